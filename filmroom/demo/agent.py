"""The agent: a scripted policy with a small model, rules, a memory and four tools.

It understands a message by its model, reads what is remembered of the user and which rules are in scope, calls at most
one tool through that tool's policy, and answers by a template. It never learns by itself.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from filmroom.demo.log import Log, iso
from filmroom.demo.phrases import phrase_book
from filmroom.demo.reading import Entities, Manner, in_scope, preference, read_entities, read_manner
from filmroom.demo.served import Prediction, Served
from filmroom.demo.shop import (
    DEFAULT_SHOP,
    DEFAULT_SLOT,
    NotFoundError,
    Shop,
    ToolError,
    UnavailableError,
    ValidationError,
)
from models.normalise import apply_chain
from store.records import Fact, ToolPolicy

MODEL = "intents"
"""Name of the agent's model, in its log and in a release."""

OUT_OF_SCOPE = "out_of_scope"
"""The label that means: none of the intents."""

NOT_UNDERSTOOD = "I am sorry, I did not understand. Could you put it in other words?"
HANDED_OVER = "I pass you on to a colleague, who will answer you shortly."

TOOLS = {
    "order_status": "get_order",
    "cancel_order": "update_order",
    "change_address": "update_order",
    "reschedule_delivery": "update_order",
    "return_item": "create_return",
    "exchange_item": "create_return",
    "refund_status": "get_order",
    "stock_check": "check_stock",
    "pickup": "get_order",
    "invoice": "get_order",
}
"""The tool an intent needs; the others need none."""


@dataclass(frozen=True)
class Message:
    """What a user writes."""

    id: str
    user: str
    channel: str
    text: str
    at: datetime


@dataclass(frozen=True)
class Reply:
    """What the agent did with a message."""

    text: str
    intent: str
    """The label it acted on."""
    prediction: Prediction
    """What the model said."""
    trace: dict[str, Any]
    """The conversation as a native line."""


@dataclass(frozen=True)
class Turn:
    """One answer in the making."""

    message: Message
    intent: str
    named: Entities
    manner: Manner
    facts: tuple[Fact, ...]
    policies: Mapping[str, ToolPolicy]
    shop: Shop
    log: Log

    def use(self, **arguments: str | None) -> dict[str, Any]:
        """Call the intent's tool through its policy. Raises ToolError when the last attempt failed."""
        tool = TOOLS[self.intent]
        policy = self.policies.get(tool, ToolPolicy(tool=tool))
        if policy.disabled:
            raise UnavailableError(f"{tool} is switched off")
        mended = mend_arguments(arguments, policy)
        for _ in range(policy.retries or 0):
            try:
                return self._attempt(tool, mended)
            except UnavailableError:
                continue
        return self._attempt(tool, mended)

    def _attempt(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            output = self.shop.call(tool, arguments, now=self.log.now)
        except ToolError as error:
            self.log.add("tool", tool, input=arguments, error=str(error), error_type=error.error_type)
            raise
        self.log.add("tool", tool, input=arguments, output=output)
        return output


def converse(message: Message, served: Served, shop: Shop) -> Reply:
    """The agent's reply to `message` with what is served, and its log."""
    log = Log(message.at)
    prediction = label, confidence, rejected = served.predict(message.text)
    intent = OUT_OF_SCOPE if rejected else label
    attributes = {"turned_away": label} if rejected else None
    log.add("predict", MODEL, input=message.text, output=intent, confidence=round(confidence, 4), attributes=attributes)
    facts = served.facts(message.user)
    remembered = [fact.model_dump(mode="json", exclude_none=True) for fact in facts]
    log.add("memory", "facts", input={"user": message.user}, memories=remembered)
    scope = {"intent": intent, "channel": message.channel, "user": message.user, "tool": TOOLS.get(intent, "")}
    rules = tuple(rule for rule in served.rules if in_scope(rule, scope))
    named = read_entities(message.text)
    turn = Turn(message, intent, named, read_manner(rules), facts, served.policies, shop, log)
    text = answer(turn)
    context = {"intent": intent, "rules": [rule.id for rule in rules]}
    return Reply(text, intent, prediction, _trace(message, served.release, text, log, context))


def answer(turn: Turn) -> str:
    """The text of the answer; a tool that fails is apologised for."""
    if turn.manner.hand_over:
        return HANDED_OVER
    handler = HANDLERS.get(turn.intent)
    if handler is None:
        return NOT_UNDERSTOOD
    if TOOLS.get(turn.intent) not in (None, "check_stock") and turn.named.order is None:
        return "Which order is it? Please give its number, for example A-1042."
    try:
        return handler(turn)
    except ValidationError:
        return "I am sorry, I could not do that with what you wrote. Please check the number and the date."
    except NotFoundError:
        return f"I cannot find the order {turn.named.order}. Please check the number."
    except ToolError:
        return "I am sorry, that does not work at the moment. Please try again later."


def mend_arguments(arguments: Mapping[str, str | None], policy: ToolPolicy) -> dict[str, Any]:
    """The arguments that were given, each through the policy's normalisers for it."""
    return {
        name: apply_chain(policy.normalisers.get(name, ()), value)
        for name, value in arguments.items()
        if value is not None
    }


def _order_status(turn: Turn) -> str:
    order = turn.use(order_id=turn.named.order)
    arrival = f" It comes on {order['delivery_date']}, between {order['window']}." if turn.manner.window else ""
    return f"Your order {order['order_id']} is {order['status']}.{arrival}"


def _change(turn: Turn, change: str, done: str, **details: str | None) -> str:
    if change in turn.manner.confirm:
        return f"Shall I make this change to order {turn.named.order}: {change}? Please answer yes or no."
    output = turn.use(order_id=turn.named.order, change=change, **details)
    return done.format(order=output["order_id"])


def _cancel_order(turn: Turn) -> str:
    return _change(turn, "cancel", "Your order {order} is cancelled.")


def _change_address(turn: Turn) -> str:
    return _change(turn, "address", "You can now enter the new address of order {order} under My orders.")


def _reschedule_delivery(turn: Turn) -> str:
    if turn.named.date is None:
        return "On which day shall we come?"
    slot = preference(turn.facts, phrase_book().slots) or DEFAULT_SLOT
    done = f"We deliver it on the day you named, in the {slot}."
    return _change(turn, "delivery", done, date=turn.named.date, slot=slot)


def _return_item(turn: Turn) -> str:
    label = turn.use(order_id=turn.named.order, kind="return")
    return f"Your return {label['return_id']} is open. The label is in your mailbox."


def _exchange_item(turn: Turn) -> str:
    label = turn.use(order_id=turn.named.order, kind="exchange")
    return f"Your exchange {label['return_id']} is open. Choose the new article under My orders."


def _refund_status(turn: Turn) -> str:
    order = turn.use(order_id=turn.named.order)
    return f"The refund for order {order['order_id']} is {order['refund']}."


def _stock_check(turn: Turn) -> str:
    if turn.named.item is None:
        return "Which article do you mean?"
    shop = turn.named.shop or DEFAULT_SHOP
    quantity = turn.use(item=turn.named.item, shop=shop)["quantity"]
    if quantity is None:
        return f"I could not find out whether the {shop} shop has the {turn.named.item}."
    return f"The {shop} shop has {quantity} of the {turn.named.item}."


def _pickup(turn: Turn) -> str:
    turn.use(order_id=turn.named.order)
    shop = preference(turn.facts, phrase_book().shops) or DEFAULT_SHOP
    return f"You can pick it up at the {shop} shop."


def _invoice(turn: Turn) -> str:
    order = turn.use(order_id=turn.named.order)
    return f"The invoice for order {order['order_id']} is in your mailbox."


def _set_preference(turn: Turn) -> str:
    return "Thank you, I have noted that."


def _opening_hours(turn: Turn) -> str:
    return "Our shops are open from 9 to 18 o'clock, Monday to Saturday."


HANDLERS: dict[str, Callable[[Turn], str]] = {
    "order_status": _order_status,
    "cancel_order": _cancel_order,
    "change_address": _change_address,
    "reschedule_delivery": _reschedule_delivery,
    "return_item": _return_item,
    "exchange_item": _exchange_item,
    "refund_status": _refund_status,
    "stock_check": _stock_check,
    "pickup": _pickup,
    "set_preference": _set_preference,
    "opening_hours": _opening_hours,
    "invoice": _invoice,
}


def _trace(message: Message, release: str, text: str, log: Log, attributes: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "trace",
        "id": message.id,
        "name": "support",
        "session": message.id,
        "user": message.user,
        "channel": message.channel,
        "started": iso(message.at),
        "ended": iso(log.now + timedelta(milliseconds=30)),
        "status": "ok",
        "input": message.text,
        "output": text,
        "release": release,
        "attributes": attributes,
        "spans": log.spans,
    }
