"""A web shop and its support agent: what customers ask, and how a scripted agent with a trained intent model answers.

The agent is deterministic. What it does depends on four parts, one a place a correction can go: `context` (lines of the
prompt, notes in the knowledge base), `memory` (facts of users), `tooling` (how tools are called and what they do) and
`weights` (the intent model). A fault is a difference between the agent's world and the ideal one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from pydantic import JsonValue
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

from store.records import Episode, Span, Trace

DAY_US = 86_400_000_000
START_US = 20_000 * DAY_US
MODEL = "intents"
"""The small model's name in the log."""


@dataclass(frozen=True)
class Intent:
    """One thing customers ask for, and what the agent does about it."""

    says: tuple[str, ...]
    """Phrasings the model knows, with `{slot}` places."""
    slang: tuple[str, ...]
    """Phrasings nobody trained it on."""
    line: str
    """The answer, with `{slot}`, `{fact}` or `{note}` places."""
    tool: str | None = None
    slots: tuple[str, ...] = ()
    fact: str | None = None
    """Kind of user fact it answers from."""
    topic: str | None = None
    """Topic of the note it answers from."""


SHOP: dict[str, Intent] = {
    "return_item": Intent(
        ("I want to return order {order_id}", "please take back order {order_id}", "how do I send back {order_id}",
         "return for {order_id} please", "I would like to return what I bought, {order_id}"),
        ("{order_id} is going straight back to you", "not keeping {order_id}", "boxing {order_id} up again for you"),
        "The return of {order_id} is open.", tool="open_return", slots=("order_id",)),
    "cancel_order": Intent(
        ("cancel order {order_id}", "please cancel {order_id}", "stop order {order_id}", "I want to cancel {order_id}",
         "do not send order {order_id}, cancel it"),
        ("changed my mind about {order_id}", "kill {order_id} for me", "scrap {order_id} before it goes out"),
        "Order {order_id} is cancelled.", tool="cancel_order", slots=("order_id",)),
    "change_address": Intent(
        ("change the address of {order_id} to {address}", "send {order_id} to {address} instead",
         "new address for {order_id}: {address}", "please deliver {order_id} to {address}",
         "the address of {order_id} should be {address}"),
        ("{order_id} has to land at {address}", "moved house, {order_id} goes with me to {address}",
         "reroute {order_id}, {address}"),
        "Order {order_id} goes to {address}.", tool="update_order", slots=("order_id", "address")),
    "track_order": Intent(
        ("where is order {order_id}", "track {order_id}", "what is the status of {order_id}", "has {order_id} shipped",
         "when does {order_id} arrive"),
        ("{order_id} still nothing at my door", "any sign of {order_id}", "eta {order_id}?"),
        "Order {order_id} is on its way.", tool="get_order", slots=("order_id",)),
    "check_stock": Intent(
        ("is {sku} in stock", "do you have {sku}", "stock of {sku} please", "can I still buy {sku}",
         "is {sku} available"),
        ("{sku} sold out or what", "got any {sku} left", "need {sku} today, possible?"),
        "{sku} is in stock.", tool="get_stock", slots=("sku",)),
    "send_invoice": Intent(
        ("send me the invoice of {order_id}", "I need an invoice for {order_id}", "invoice {order_id} please",
         "where is my bill for {order_id}", "mail the invoice of order {order_id}"),
        ("my accountant wants paper on {order_id}", "{order_id} for the taxman please", "proof of purchase {order_id}"),
        "The invoice of {order_id} is on its way.", tool="send_invoice", slots=("order_id",)),
    "book_delivery": Intent(
        ("book {speed} delivery for {order_id}", "{speed} shipping for order {order_id}",
         "please ship {order_id} {speed}", "upgrade {order_id} to {speed} delivery", "I want {speed} delivery of {order_id}"),
        ("{order_id} asap, {speed}", "hurry {order_id} up, make it {speed}", "{speed} for {order_id}, cost no object"),
        "Order {order_id} ships {speed}.", tool="book_delivery", slots=("order_id", "speed")),
    "pickup": Intent(
        ("where can I pick up my parcel", "pick up in store please", "which shop has my parcel", "collect my order in a shop",
         "I will collect it, where"),
        ("coming by for my stuff, where to", "save me a counter", "i'll grab it myself, which branch"),
        "You can pick it up at {fact}.", fact="pickup_shop"),
    "payment": Intent(
        ("how will I pay", "which payment method is set", "what card will be charged", "payment of my order please",
         "how is my order paid"),
        ("what's getting billed", "who is footing this, which card", "money comes from where"),
        "It is paid by {fact}.", fact="payment_method"),
    "contact": Intent(
        ("how will you contact me", "how do I get the updates", "where do you send news of my order",
         "contact me about my order", "which way do you tell me"),
        ("ping me how", "you reach me where again", "updates go where"),
        "We will contact you by {fact}.", fact="contact_way"),
    "opening_hours": Intent(
        ("when are you open", "opening hours please", "what are your hours", "are you open on Sunday",
         "until when is the shop open"),
        ("doors close when", "lights on till late?", "can i drop in after work"),
        "{note}", topic="opening hours"),
    "warranty": Intent(
        ("how long is the warranty", "what does the warranty cover", "warranty on my blender", "is there a guarantee",
         "how many years of guarantee do I get"),
        ("it broke, who pays", "thing died after a month, covered?", "am i insured against defects"),
        "{note}", topic="warranty"),
    "refund_time": Intent(
        ("when do I get my refund", "how long does a refund take", "my refund is not here yet", "refund duration please",
         "when is the money back in my account"),
        ("still waiting to see my cash", "owe me money since when", "where's my dough"),
        "{note}", topic="refund"),
}  # fmt: skip

NOTES = {
    "opening hours": "We are open from 9 to 18, Monday to Saturday.",
    "warranty": "The warranty is two years on every device.",
    "refund": "A refund takes five working days.",
}
FACTS = {
    "pickup_shop": ("the Main Street shop", ("the Elm Street shop", "the Harbour shop", "the Station shop", "the Mill shop")),
    "payment_method": ("credit card", ("invoice", "bank transfer", "gift card", "direct debit")),
    "contact_way": ("e-mail", ("text message", "phone", "letter", "messenger")),
}  # fmt: skip
"""Kind of fact to what holds for everybody unless a user says otherwise, and what they may say."""
SPEEDS = ("express", "standard", "overnight")
CHANNELS = ("web", "app", "phone")


@dataclass(frozen=True)
class Tool:
    """How a tool is called, and what it does."""

    schema: dict[str, JsonValue]
    drops: frozenset[str] = frozenset()
    """Arguments the call leaves out."""
    strips: Mapping[str, str] = field(default_factory=dict)
    """Argument to the prefix that the call takes off it."""
    writes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Argument to what the call writes in place of a value."""
    down: tuple[float, float] | None = None
    """Days between which it is unavailable."""
    error: str | None = None
    """What it answers to every call; None: it works."""
    silent_from: float | None = None
    """Day from which it answers with nothing, without an error."""


def _schema(*names: str) -> dict[str, JsonValue]:
    kinds: dict[str, JsonValue] = {
        "order_id": {"type": "string", "pattern": "^#[0-9]+$"},
        "address": {"type": "string", "minLength": 3},
        "sku": {"type": "string"},
        "speed": {"type": "string", "enum": list(SPEEDS)},
    }
    return {"type": "object", "properties": {name: kinds[name] for name in names}, "required": list(names)}


TOOLS = {each.tool: Tool(_schema(*each.slots)) for each in SHOP.values() if each.tool}


@dataclass(frozen=True)
class World:
    """The agent as it is, in four parts."""

    lines: Mapping[str, tuple[tuple[float, str], ...]] = field(default_factory=dict)
    """context: intent to answers, each from a day on, in place of the shop's own."""
    notes: Mapping[str, str] = field(default_factory=lambda: NOTES)
    """context: what the knowledge base finds, by topic."""
    overlooks: frozenset[str] = frozenset()
    """context: topics whose note the prompt does not tell the agent to use."""
    facts: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """memory: (user, kind) to value."""
    tools: Mapping[str, Tool] = field(default_factory=lambda: TOOLS)
    """tooling."""
    training: tuple[tuple[str, str], ...] | None = None
    """weights: what the intent model was trained on; None: it is never wrong."""

    def changed(self, **parts: Any) -> "World":
        return replace(self, **parts)


@dataclass(frozen=True)
class Request:
    """One message of a customer, with what is meant by it."""

    id: str
    user: str
    channel: str
    day: float
    intent: str
    text: str
    slots: Mapping[str, str]
    earlier: bool = False
    """The customer says something about themselves; nothing is asked."""


def training_rows(rng: Any, *, without: Sequence[str] = (), times: int = 3) -> tuple[tuple[str, str], ...]:
    """What the developers wrote: every known phrasing `times` over, but those of `without`."""
    return tuple(
        (say.format(**slots(rng)), name)
        for name, intent in SHOP.items()
        for say in intent.says
        if say not in without
        for _ in range(times)
    )


def slots(rng: Any) -> dict[str, str]:
    return {
        "order_id": f"#{rng.integers(1000, 9999)}",
        "address": f"{rng.integers(1, 99)} {rng.choice(['Oak Road', 'Lake Street', 'Hill Lane', 'North Avenue'])}",
        "sku": f"{rng.choice(['lamp', 'kettle', 'blender', 'chair', 'desk'])}-{rng.integers(10, 99)}",
        "speed": str(rng.choice(SPEEDS)),
    }


@lru_cache(maxsize=64)
def model_of(training: tuple[tuple[str, str], ...]) -> Pipeline:
    """The intent model on these rows: word and pair TF-IDF, logistic regression."""
    texts, labels = zip(*training, strict=True)
    model = make_pipeline(TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), LogisticRegression(C=10, tol=1e-2))
    return model.fit(texts, labels)


def serve(requests: Sequence[Request], world: World) -> list[Episode]:
    """What the agent makes of the requests, in order."""
    if world.training is None or not requests:
        return [_served(each, world, each.intent, 0.97) for each in requests]
    model = model_of(world.training)
    shares = model.predict_proba([each.text for each in requests])
    return [
        _served(each, world, str(model.classes_[row.argmax()]), round(float(row.max()), 4))
        for each, row in zip(requests, shares, strict=True)
    ]


def outputs(requests: Sequence[Request], world: World) -> list[str]:
    """What the agent answers to the requests, in order; as `serve`, without the steps."""
    labels = [each.intent for each in requests]
    if world.training is not None and requests:
        labels = list(map(str, model_of(world.training).predict([each.text for each in requests])))
    return [_Mute(each).answer(world, label, 0.0) for each, label in zip(requests, labels, strict=True)]


def _served(request: Request, world: World, label: str, confidence: float) -> Episode:
    steps = _Steps(request)
    trace: dict[str, Any] = {
        "source": "shop", "external_id": request.id, "user": request.user, "channel": request.channel,
        "started_us": steps.at_us, "input": request.text, "status": "ok",
    }  # fmt: skip
    if request.earlier:
        return Episode(trace=Trace(**trace, output="Thank you, noted."))
    text = steps.answer(world, label, confidence)
    return Episode(trace=Trace(**trace, output=text), spans=tuple(steps.spans))


class _Open(dict[str, str]):
    """A slot that the message does not have stays as it is."""

    def __missing__(self, key: str) -> str:
        return f"your {key.replace('_', ' ')}"


class _Steps:
    def __init__(self, request: Request) -> None:
        self.request = request
        self.at_us = START_US + int(request.day * DAY_US)
        self.spans: list[Span] = []

    def answer(self, world: World, label: str, confidence: float) -> str:
        """What the agent says, having done what it does about `label`."""
        asked, intent = self.request.text, SHOP[label]
        self.add(kind="predict", name=MODEL, model=MODEL, input=asked, output=label, confidence=confidence)
        values: dict[str, str] = dict(self.request.slots)
        shown: list[JsonValue] = []
        if intent.fact:
            values["fact"] = self._remembered(world, intent.fact, shown)
        if intent.topic:
            values["note"] = self._found(world, intent.topic, shown)
        failed = self.call(world.tools[intent.tool], intent, values) if intent.tool else False
        lines = [line for day, line in world.lines.get(label, ()) if day <= self.request.day]
        text = (
            "Sorry, that did not work." if failed else (lines[-1] if lines else intent.line).format_map(_Open(values))
        )
        prompt: list[JsonValue] = [*shown, {"role": "user", "content": asked}]
        self.add(kind="llm", name="assistant", model="assistant", input=prompt, output=text)
        return text

    def _remembered(self, world: World, kind: str, shown: list[JsonValue]) -> str:
        known = world.facts.get((self.request.user, kind))
        record: list[JsonValue] = [{"predicate": kind, "value": known}] if known else []
        self.add(kind="memory", name="user_facts", input={"predicate": kind}, output=record, memories=tuple(record))
        shown.extend(record)
        return known or FACTS[kind][0]

    def _found(self, world: World, topic: str, shown: list[JsonValue]) -> str:
        note = world.notes.get(topic)
        documents = [note or "Our newsletter comes out every month."]
        self.add(
            kind="retrieval", name="handbook", input=self.request.text, output=documents, documents=tuple(documents)
        )
        shown.append({"role": "system", "content": documents[0]})
        used = note is not None and topic not in world.overlooks
        return str(note) if used else "I do not have that information, please look at our website."

    def add(self, **fields: Any) -> None:
        at = len(self.spans)
        self.spans.append(
            Span(source="shop", trace_external_id=self.request.id, external_id=str(at), position=at,
                 started_us=self.at_us + at, **fields)
        )  # fmt: skip

    def call(self, tool: Tool, intent: Intent, values: Mapping[str, str]) -> bool:
        """Call the tool as this world calls it; returns whether it failed."""
        given: dict[str, JsonValue] = {}
        for name in intent.slots:
            if name in tool.drops or name not in values:
                continue
            value = tool.writes.get(name, {}).get(values[name], values[name])
            given[name] = value.removeprefix(tool.strips.get(name, "\0"))
        error = self._error(tool, given)
        silent = tool.silent_from is not None and tool.silent_from <= self.request.day
        output: JsonValue = None if error or silent else {"done": True, **given}
        self.add(
            kind="tool", name=intent.tool, input=given, output=output, error=error, status="error" if error else "ok"
        )
        return error is not None or silent

    def _error(self, tool: Tool, given: Mapping[str, JsonValue]) -> str | None:
        if tool.error:
            return tool.error
        if tool.down and tool.down[0] <= self.request.day < tool.down[1]:
            return "HTTP 503 Service Unavailable"
        required: Any = tool.schema["required"]
        for name in required:
            if name not in given:
                return f"missing required argument: '{name}'"
        if not str(given.get("order_id", "#")).startswith("#"):
            return "order_id is not valid"
        if given.get("speed", SPEEDS[0]) not in SPEEDS:
            return f"speed must be one of {', '.join(SPEEDS)}"
        return None


class _Mute(_Steps):
    def add(self, **fields: Any) -> None:
        """Nothing is written down."""
