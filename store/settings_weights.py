"""`[weights.NAME]`: a small model of the program."""

from typing import Literal

from pydantic import Field, JsonValue

from store.settings_section import Section


class WeightsSection(Section):
    """A small model of the program."""

    task: Literal["text", "tabular"] = "text"
    """`text`: an input is one text; `tabular`: a record of numbers and categories, some of which may be missing."""
    training: str | None = None
    """CSV or JSONL the champion was trained on."""
    golden: str | None = None
    """CSV or JSONL of cases, in the training file's columns, that must stay right; None: there are none."""
    sealed: str | None = None
    """CSV or JSONL of cases, in the same columns, that nothing is ever trained on and the gate scores; None: there are none."""
    input: str = "text"
    """Column of the training file with the input."""
    inputs: tuple[str, ...] = ()
    """Columns that make a record of a tabular task; empty: all but the label's, or the object in column `input`."""
    output: str = "label"
    """Column of the training file with the label."""
    out_of_scope: str | None = None
    """Label that means: none of the classes. It trains the reject model only."""
    champion: str = Field(default="logged", pattern=r"^(ours|logged|https?://\S+)$")
    """`logged`: another service predicts, and its logged answers stand for it; `ours`: filmroom founds and serves it; an http
    address: another service predicts, and is asked there what it answers now."""
    champion_token_env: str | None = None
    """Environment variable with the bearer token of that address; None: none is sent."""
    patch: bool | None = None
    """Whether an approved correction is learnt at once by its own classes alone; None: where there are 5,000 base rows."""
    in_scope_rejection: float = Field(default=0.1, ge=0, lt=1)
    """Share of in-scope inputs the reject threshold may turn away."""

    estimator: str | None = None
    """Import path of a scikit-learn classifier that is one more arm; it must give probabilities."""
    estimator_params: dict[str, JsonValue] = Field(default_factory=dict)
    """Its arguments."""

    @property
    def is_elsewhere(self) -> bool:
        """Whether another service is asked for the champion's answers."""
        return self.champion not in ("ours", "logged")
