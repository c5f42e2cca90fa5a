"""Whether a conversation went as it should have, and which single change would have made it so: found by running it.

The right answer is what the same agent says when it lacks nothing: it understands the message, follows the shop's
rules, remembers what its user said, and its tools are mended. A target mends a conversation when the answer is right
with that one thing as it should be and everything else as it was served.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from filmroom.demo.agent import OUT_OF_SCOPE, Reply, converse
from filmroom.demo.season import PLAIN, SHARES, Request
from filmroom.demo.served import Prediction, Served, Setup
from filmroom.demo.shop import Shop, tool_schemas
from store.records import TARGETS, Fact, Rule, Target, ToolPolicy

ORACLE_RULES = (
    Rule(
        id="rule_confirm",
        scope={"intent": "cancel_order"},
        action="instruct",
        argument="Always confirm before cancelling an order.",
        author="oracle",
    ),
    Rule(
        id="rule_window",
        scope={"intent": "order_status"},
        action="instruct",
        argument="Always name the delivery window when you give the status of an order.",
        author="oracle",
    ),
)

ORACLE_POLICIES: Mapping[str, ToolPolicy] = {
    "get_order": ToolPolicy(tool="get_order", normalisers={"order_id": ("trim", "upper")}),
    "update_order": ToolPolicy(tool="update_order", normalisers={"date": ("date_iso",)}),
    "create_return": ToolPolicy(tool="create_return"),
}


@dataclass(frozen=True)
class Conversation:
    """A request, the agent's reply to it, and what is true of them."""

    request: Request
    reply: Reply
    right: str
    """What should have been answered."""
    mends: frozenset[Target]
    """The targets each of which alone would have made it right; empty: it was right, or no single change would."""

    @property
    def id(self) -> str:
        return self.request.message.id

    @property
    def ok(self) -> bool:
        return self.reply.text == self.right


def truth(conversation: Conversation) -> Literal["ok", "failed"]:
    """Whether the user was given the right answer."""
    return "ok" if conversation.ok else "failed"


def judged(request: Request, reply: Reply, served: Served, shop: Shop) -> Conversation:
    """`reply` with what is true of it; `served` and `shop` are those it was made with."""
    right = converse(request.message, ideal(request), shop.healthy()).text
    if reply.text == right:
        return Conversation(request, reply, right, frozenset())
    said = reply.prediction
    mends = frozenset(target for target in TARGETS if _repaired(target, request, served, shop, said) == right)
    return Conversation(request, reply, right, mends)


def failure_rates(conversations: Iterable[Conversation]) -> dict[str, tuple[int, int]]:
    """Family to (failed, all), in the order of `SHARES`, then `plain`, then `all`; a family without any is left out."""
    counts = dict.fromkeys((*SHARES, PLAIN, "statement", "all"), (0, 0))
    for conversation in conversations:
        for family in (conversation.request.family, "all"):
            failed, total = counts[family]
            counts[family] = (failed + (not conversation.ok), total + 1)
    return {family: count for family, count in counts.items() if count[1]}


def ideal(request: Request) -> Setup:
    """What would be served to `request` if nothing was missing."""
    return Setup(
        model=lambda _: right_prediction(request),
        rules=ORACLE_RULES,
        memory=oracle_facts(request),
        policies=ORACLE_POLICIES,
    )


def right_prediction(request: Request) -> Prediction:
    return request.intent, 1.0, request.intent == OUT_OF_SCOPE


def oracle_facts(request: Request) -> tuple[Fact, ...]:
    """What the user has asked to be remembered, as facts."""
    user = request.message.user
    wanted = {"pickup_shop": request.shop, "delivery_slot": request.slot}
    return tuple(
        Fact(id=f"fact_{user}_{name}", scope_id=user, subject=user, predicate=name, value=value, source=user)
        for name, value in wanted.items()
        if value is not None
    )


def with_fix(target: Target, request: Request, served: Served, said: Prediction) -> Setup:
    """`served` with what the oracle would put into one target; `said` is what the served model answers."""
    before = Setup(
        model=lambda _: said,
        release=served.release,
        rules=served.rules,
        memory=served.facts(request.message.user),
        policies=served.policies,
    )
    if target == "weights":
        return replace(before, model=lambda _: right_prediction(request))
    if target == "context":
        return replace(before, rules=ORACLE_RULES)
    if target == "memory":
        return replace(before, memory=oracle_facts(request))
    return replace(before, policies=ORACLE_POLICIES)


def _repaired(target: Target, request: Request, served: Served, shop: Shop, said: Prediction) -> str:
    world = replace(shop, repaired=frozenset(tool_schemas())) if target == "tooling" else shop
    return converse(request.message, with_fix(target, request, served, said), world).text
