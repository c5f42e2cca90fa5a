"""The patch arm: the touched classes learnt anew at approval, judged on rows they did not learn, served and taken back."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from flows.champion import live_model
from flows.review import Reviewed, approve
from flows.turn import turn
from flows.undo import undo
from flows.workspace import Workspace
from models.fitting import Task
from models.ground import Ground, ground_of, load_ground, save_ground
from models.one_vs_rest import refit_class
from models.patch import Rows, make_patch, not_applicable
from models.reject import linear_scores
from models.text_model import TextModel
from store.errors import ModelRefused
from store.records import DatasetRow
from store.releases import live_release
from store.retrains import retrains_of
from store.review_queue import review_queue
from tests.shop_log import SETTINGS, misread, said, take_in, trace, working_in

THINGS = ("lamp", "shoes", "shirt", "phone", "chair", "table", "clock", "radio", "couch", "glass")
ASKED = {
    "status": ("where is my {}", "track the {}", "when comes my {}", "has the {} left"),
    "return": ("i want to return the {}", "return my {}", "how do i return a {}", "return label for the {}"),
    "price": ("what does the {} cost", "price of a {}", "how much is the {}", "take {} at which price"),
    "stock": ("is the {} in stock", "do you have a {}", "any {} left in stock", "send {} back in stock"),
}
BASE = (
    *(DatasetRow(input=ask.format(each), label=label, source="base")
      for label, asks in ASKED.items() for ask in asks for each in THINGS),
    *(DatasetRow(input=f"about my {each}", label=list(ASKED)[n % 4], source="base") for n, each in enumerate(THINGS)),
)  # fmt: skip
"""The last ten are answered by guessing: there the threshold of the reject model comes to lie."""
TAUGHT = [DatasetRow(input=f"{verb} back my {thing}", label="return", source=f"u{n}", trace_id=f"{verb}{n}")
          for n, thing in enumerate(THINGS) for verb in ("take", "send")]  # fmt: skip
MODEL = TextModel().fit([str(row.input) for row in BASE], [row.label for row in BASE])
ROWS = Rows(base=BASE, learnt=(), taught=TAUGHT, served=["status"] * len(TAUGHT))


def ground() -> Ground:
    found = ground_of(MODEL, [str(row.input) for row in BASE])
    assert found is not None
    return found


def test_a_class_refitted_from_its_active_rows_is_the_class_refitted_from_all() -> None:
    X, positive = MODEL.features([str(row.input) for row in BASE]), np.array([row.label == "return" for row in BASE])
    weights, kept = np.ones(len(BASE)), np.ones(len(BASE), bool)
    before = np.where(positive, 0.2, -1.2)
    column, constant = refit_class(X, positive, weights, before, kept=kept, solver=LinearSVC(tol=1e-6))
    whole = LinearSVC(tol=1e-6).fit(X, positive)
    assert np.abs(X @ column + constant - linear_scores(whole, X)[:, 0]).max() < 0.02


def test_a_class_that_the_model_does_not_have_gets_a_column_of_its_own() -> None:
    asked = [f"when has my {thing} {verb} at which label" for verb in ("left", "stock") for thing in THINGS]
    taught = [DatasetRow(input=text, label="invoice", source=f"u{n}") for n, text in enumerate(asked)]
    rows = Rows(base=BASE, learnt=(), taught=taught, served=["status"] * len(taught))
    assert not_applicable(MODEL, ground(), rows, Task()) == ""
    patched = make_patch(MODEL, ground(), rows, task=Task())
    assert patched.model.classes.tolist() == ["invoice", "price", "return", "status", "stock"]
    assert patched.taught.count("invoice") >= 12
    assert patched.model.predict(["when has my lamp left at which label"])[0].label == "invoice"
    texts = [str(row.input) for row in BASE]
    grown = MODEL.with_classes(["invoice"])
    assert grown.predict(texts) == MODEL.predict(texts)
    assert TextModel.from_parts(patched.model.parts()).predict(asked) == patched.model.predict(asked)


def test_a_patch_changes_only_the_columns_of_the_touched_classes() -> None:
    patched = make_patch(MODEL, ground(), ROWS, task=Task())
    X = MODEL.features([str(row.input) for row in BASE])
    same: Any = np.isclose(MODEL.decisions(X), patched.model.decisions(X)).all(axis=0).tolist()
    assert dict(zip(MODEL.classes, same, strict=True)) == {
        "price": True,
        "return": False,
        "status": False,
        "stock": True,
    }
    assert patched.model.predict(["take back my lamp"])[0].label == "return"


def test_what_judges_a_patch_was_not_learnt_by_it() -> None:
    unlike = [
        row.model_copy(update={"label": label}) for row, label in zip(TAUGHT, ["return", "price"] * 10, strict=True)
    ]
    patched = make_patch(MODEL, ground(), Rows(BASE, (), unlike, ROWS.served), task=Task())
    assert sum(a == row.label for a, row in zip(patched.taught, unlike, strict=True)) < len(unlike) * 0.75
    assert {BASE[i].input for i, _, _ in patched.held} <= set(MODEL.held_out.texts if MODEL.held_out else ())


def test_what_cannot_be_patched_is_said() -> None:
    model = TextModel(learner="complement_nb").fit([str(row.input) for row in BASE], [row.label for row in BASE])
    assert "no linear one" in not_applicable(model, ground(), ROWS, Task())


def test_a_ground_is_kept_and_one_that_was_swapped_is_refused(tmp_path: Path) -> None:
    names = save_ground(ground(), tmp_path)
    found = load_ground(tmp_path, names)
    assert (abs(found.features - ground().features).max(), found.held.tolist()) == (0, ground().held.tolist())
    (tmp_path / f"{names['held']}.npz").write_bytes(b"other")
    with pytest.raises(ModelRefused, match="truncated or swapped"):
        load_ground(tmp_path, names)


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    settings = SETTINGS.replace(
        'out_of_scope = "other"', 'out_of_scope = "other"\nchampion = "ours"\npatch = true\nin_scope_rejection = 0.02'
    )
    with working_in(tmp_path, settings) as opened:
        lines = "".join(f"{row.input},{row.label}\n" for row in BASE)
        (tmp_path / "train.csv").write_text("text,label\n" + lines, encoding="utf-8")
        yield opened


def approved(workspace: Workspace, count: int = 20) -> Reviewed:
    """The verdict over failures that the founded model gave."""
    texts = [str(row.input) for row in TAUGHT[:count]]
    take_in(workspace, *(misread(n, text=text, day=n % 3) for n, text in enumerate(texts)),
            *([trace(100 + n, input=f"where is my {thing}", output="status", spans=[{"id": "p", "kind": "predict",
               "name": "intents", "input": f"where is my {thing}", "output": "status"}]),
               said(100 + n, span="p", name="label", corrected_output="status")] for n, thing in enumerate(THINGS)))  # fmt: skip
    turn(workspace)
    (waiting,) = review_queue(workspace.store)
    return approve(workspace, waiting["correction"])


def test_an_approved_correction_is_served_at_once_and_taken_back(workspace: Workspace) -> None:
    done = approved(workspace)
    assert (done.state, done.live, "is served: patch passed integrity, target, global, flips" in done.next) == (
        "applied",
        True,
        True,
    ), done
    with workspace.store.read() as connection:
        row = retrains_of(connection, workspace.project)[0]
        assert live_release(connection, workspace.project).models == {"intents": row.version}
    assert (row.arm, row.decision, len(row.trace_ids)) == ("patch", "promoted", 20)
    assert live_model(workspace, "intents").predict(["send back my radio"])[0].answer == "return"
    undo(workspace, str(row.version))
    assert live_model(workspace, "intents").predict(["send back my radio"])[0].label != "return"


def test_a_full_retrain_after_a_patch_refits_the_arm_beneath(workspace: Workspace) -> None:
    from flows.training_data import gather

    approved(workspace)
    data = gather(workspace, "intents")
    assert (data.incumbent, data.learnt_rows, len(data.since_training)) == ("word_char_svc", 20, 1)
    assert data.windows == 3  # the days of the log: a patch begins no new count


def test_too_few_rows_patch_nothing_and_the_row_says_what_is_missing(workspace: Workspace) -> None:
    done = approved(workspace, 4)
    with workspace.store.read() as connection:
        row = retrains_of(connection, workspace.project)[0]
    assert (done.live, row.decision, row.arm, bool(row.to_yes)) == (False, "skipped", "patch", True)
