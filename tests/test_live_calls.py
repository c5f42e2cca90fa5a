"""What the client does by itself: models in process, tool calls, documents it reads and sentences it writes."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import filmroom_live.normalise
import filmroom_live.schema
import models.normalise
import models.schema
from filmroom_live import Release, ToolCall
from filmroom_live.documents import BadDocument, read_document, read_release
from filmroom_live.model import load
from filmroom_live.rule_text import plain
from filmroom_live.tool_call import tool_call
from models.anchored import AnchoredModel, Leads
from models.artifacts import Manifest, artifact_path, environment, save
from models.estimator_text_model import EstimatorTextModel
from models.exceptions import ExceptionModel
from models.fitting import ARMS, Task, fit_arm
from models.text_model import TextModel
from store.records import DatasetRow
from tests.live_program import same

TEXTS = ["where is order 5", "i want to return item 9", "hello there", "return order status", ""]


@pytest.mark.parametrize("learner", ["linear_svc", "logistic", "complement_nb"])
@pytest.mark.parametrize("reject", [False, True])
@pytest.mark.parametrize("exceptions", [False, True])
def test_a_model_in_process_answers_as_in_filmroom(
    tmp_path: Path, learner: str, reject: bool, exceptions: bool
) -> None:
    labels = ["status", "return", "refund"]
    texts = [f"{label} of order {n} please" for n in range(12) for label in labels]
    outside = [f"what is the weather in town {n}" for n in range(12 if reject else 0)]
    beneath = TextModel(learner=learner, out_of_scope="other")
    beneath.fit(texts + outside, labels * 12 + ["other"] * len(outside))
    model: TextModel | ExceptionModel = beneath
    if exceptions:
        model = ExceptionModel(beneath).fit(
            ["take it back", "bring it back", "sing a song"], ["return", "return", "other"]
        )
    made = Manifest(training="", arm="", code_version="", environment=environment())
    digest = save(model, tmp_path, made)
    loaded = load(artifact_path(tmp_path, digest).read_bytes(), digest)
    asked = [*texts, *outside, *TEXTS, "take it back now", "sing a song"]
    assert all(same(loaded.predict(text), expected) for text, expected in zip(asked, model.predict(asked), strict=True))


@pytest.mark.parametrize("leads", [Leads(0.0, 0.0), Leads(1.0, 0.5), Leads(50.0, 0.0), Leads(50.0, 50.0)])
def test_an_anchored_model_in_process_answers_as_in_filmroom(tmp_path: Path, leads: Leads) -> None:
    labels = ["status", "return"]
    texts = [f"{label} of order {n} please" for n in range(12) for label in labels]
    outside = [f"what is the weather in town {n}" for n in range(12)]
    old = TextModel(out_of_scope="other").fit(texts, labels * 12)
    new = TextModel(out_of_scope="other").fit([*texts, *outside], [*["return", "refund"] * 12, *["other"] * 12])
    model = AnchoredModel(AnchoredModel(old, new, Leads(0.5, 0.5)), new, leads)
    digest = save(model, tmp_path, Manifest(training="", arm="", code_version="", environment=environment()))
    loaded = load(artifact_path(tmp_path, digest).read_bytes(), digest)
    asked = [*texts, *outside, *TEXTS]
    assert all(same(loaded.predict(text), expected) for text, expected in zip(asked, model.predict(asked), strict=True))


RECORDS: list[dict[str, Any]] = [
    {"amount": n * 7 % 400, "country": ("DE", "FR", "NL")[n % 3], "age": None if n % 4 else n} for n in range(90)
]
ODD: list[Any] = [
    {},
    {"amount": None, "country": "??"},
    {"amount": "many", "more": [1]},
    {"amount": True},
    {"amount": "390", "country": " ", "age": ""},
    [1, 2],
    "hello",
]


@pytest.mark.parametrize("arm", ["boosting", "columns_logistic", "forest", "estimator"])
@pytest.mark.parametrize("outside", [None, "other"])
def test_a_model_of_records_in_process_answers_as_in_filmroom(tmp_path: Path, arm: str, outside: str | None) -> None:
    labels = [("other" if n % 9 == 0 else "hold") if n * 7 % 400 > 200 else "ship" for n in range(90)]
    base = [DatasetRow(input=each, label=said, source="base") for each, said in zip(RECORDS, labels, strict=True)]
    task = Task(kind="tabular", estimator="sklearn.tree.DecisionTreeClassifier", out_of_scope=outside)
    model = fit_arm(ARMS[arm], base, [], task=task)
    digest = save(model, tmp_path, Manifest(training="", arm="", code_version="", environment=environment()))
    loaded = load(artifact_path(tmp_path, digest).read_bytes(), digest)
    asked = [json.dumps(each, sort_keys=True) for each in (*RECORDS[::5], *ODD)]
    assert all(same(loaded.predict(each), expected) for each, expected in zip(asked, model.predict(asked), strict=True))


def test_any_classifier_of_texts_in_process_answers_as_in_filmroom(tmp_path: Path) -> None:
    labels = ["status", "return", "refund"]
    texts = [f"{label} of order {n} please" for n in range(12) for label in labels]
    model = EstimatorTextModel(estimator="sklearn.naive_bayes.MultinomialNB", out_of_scope="other")
    outside = [f"what is the weather in town {n}" for n in range(12)]
    model.fit([*texts, *outside], [*labels * 12, *["other"] * 12])
    digest = save(model, tmp_path, Manifest(training="", arm="", code_version="", environment=environment()))
    loaded = load(artifact_path(tmp_path, digest).read_bytes(), digest)
    asked = [*texts, *outside, *TEXTS]
    assert all(same(loaded.predict(text), expected) for text, expected in zip(asked, model.predict(asked), strict=True))


def test_a_model_file_that_is_not_its_digest_is_refused() -> None:
    with pytest.raises(BadDocument, match="is not"):
        load(b"PK", "0" * 64)


def test_normalisers_and_schema_exist_once() -> None:
    pairs = [(models.normalise, filmroom_live.normalise), (models.schema, filmroom_live.schema)]
    assert all(Path(str(ours.__file__)).samefile(str(theirs.__file__)) for ours, theirs in pairs)


def release_with(**value: Any) -> Release:
    schema = {
        "type": "object",
        "required": ["id"],
        "properties": {"id": {"type": "string"}, "cabin": {"enum": ["basic_economy", "business"]}},
    }
    document = {
        "release": "rel_1", "number": 1, "context": {"rules": []}, "memory": {"position": 0}, "models": {},
        "tooling": {"policies": [{"tool": "book", **value}], "tickets": [], "schemas": {"book": schema}},
    }  # fmt: skip
    return read_release(document)


def test_a_call_is_normalised_and_explained() -> None:
    release = release_with(
        normalisers={"cabin": ["enum"], "items.0.id": ["prefix:#"]},
        schema_patch={"properties": {"id": {"pattern": "^#"}}},
    )
    given: dict[str, Any] = {"cabin": "Basic economy", "items": [{"id": "1"}], "id": "7"}
    call = tool_call(release, "book", given)
    assert call.arguments == {"cabin": "basic_economy", "items": [{"id": "#1"}], "id": "7"}
    assert [(each.path, each.before) for each in call.changed] == [("cabin", "Basic economy"), ("items.0.id", "1")]
    assert (call.problems, call.ok) == (('id: "7" does not match the pattern ^#',), False)
    assert given == {"cabin": "Basic economy", "items": [{"id": "1"}], "id": "7"}


def test_a_normaliser_never_breaks_what_the_schema_accepts() -> None:
    call = tool_call(release_with(normalisers={"cabin": ["upper"]}), "book", {"id": "1", "cabin": "business"})
    assert (call.arguments["cabin"], call.changed) == ("business", ())


def test_a_tool_that_is_switched_off_says_so() -> None:
    call = tool_call(release_with(disabled=True, retries=3), "book", {"id": "1"})
    assert (call.disabled, call.ok, call.problems, call.retries) == (True, False, ("book is switched off",), 3)


def test_a_tool_without_a_policy_is_called_as_it_is() -> None:
    assert tool_call(release_with(), "other", {"a": 1}) == ToolCall("other", {"a": 1})


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "cabin", "0", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)
CHAINS = st.lists(
    st.sampled_from(["trim", "lower", "upper", "digits", "date_iso", "enum", "prefix:#", "unknown"]), max_size=3
)


@given(arguments=ANYTHING, path=st.sampled_from(["id", "cabin", "x.0", "x.id", "", "9"]), chain=CHAINS)
def test_any_arguments_come_back_and_a_second_time_unchanged(arguments: Any, path: str, chain: list[str]) -> None:
    release = release_with(normalisers={path: chain[:1]})
    once = tool_call(release, "book", arguments)
    again = tool_call(release, "book", once.arguments)
    assert repr(again.arguments) == repr(once.arguments)
    assert all(isinstance(each, str) and len(each) < 3000 for each in once.problems)


@given(
    data=st.binary(max_size=200)
    | st.text(max_size=200).map(str.encode)
    | ANYTHING.map(lambda each: repr(each).encode())
)
def test_no_bytes_break_the_reader(data: bytes) -> None:
    for key in (None, "key"):
        with pytest.raises(BadDocument):
            read_release(read_document(data, key))


@given(text=st.text())
def test_a_sentence_is_one_visible_line(text: str) -> None:
    shown = plain(text)
    assert shown == plain(shown)
    assert "\n" not in shown
    assert shown.isprintable() or {each for each in shown if not each.isprintable()} <= {"\u200c", "\u200d"}
