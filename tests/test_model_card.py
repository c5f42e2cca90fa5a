"""What a model's card says, and that text of the log stays data in it."""

from flows.model_card import model_card
from models.artifacts import Manifest
from store.records import GateStage, Retrain, Version
from store.records.weights import ChangedAnswer

VERSION = Version(
    project="default",
    target="weights",
    model="intents",
    content={"rows": 120, "training": "abc", "artifact": "def", "arm": "char_svc"},
    parent="ver_before",
    created_us=0,
)
MANIFEST = Manifest(artifact="def", training="abc", arm="char_svc", code_version="0.1.0", environment={"numpy": "2"})
PROMOTED = Retrain(
    id="ret_1",
    model="intents",
    at_us=0,
    decision="promoted",
    reason="char_svc passed every stage of the gate",
    arm="char_svc",
    arms=({"arm": "char_svc", "score": 0.5, "rows": 20, "repaired": 10, "broken": 0, "seconds": 1.5, "error": None},),
    gate=(GateStage(stage="target", verdict="passed", sentence="9 newly right | <b>0 newly wrong</b>"),),
    examples=(
        ChangedAnswer(
            change="newly wrong", trace_id="trc_9", row="r", truth="refund", champion="refund", challenger="a`b"
        ),
    ),
)


def test_a_card_has_the_data_the_arms_the_gate_and_where_it_fails() -> None:
    card = model_card(VERSION, MANIFEST, PROMOTED, [{"label": "refund", "source": "ann"}])
    assert [line for line in card.splitlines() if line.startswith("#")] == [
        f"# `intents` {VERSION.id}",
        "## Data",
        "## How it was judged",
        "## Where it fails",
        "## Taking it back",
    ]
    assert "| char_svc | 0.500 | 20 | 10 | 0 | 1.5 |  |" in card
    assert "* `refund`: 1 answers newly wrong" in card


def test_text_of_the_log_is_no_markup_in_a_card() -> None:
    card = model_card(VERSION, MANIFEST, PROMOTED, [{"label": "`</td>` # x", "source": "ann"}])
    assert "9 newly right \\| &lt;b>0 newly wrong&lt;/b>" in card
    assert ("* `'</td>' # x`: 1" in card, "* trc_9: `a'b` and right was `refund`" in card) == (True, True)


def test_a_first_version_was_not_judged() -> None:
    first = VERSION.model_copy(update={"parent": None})
    assert "Not at all: it is the first version" in model_card(first, MANIFEST, None, [])
