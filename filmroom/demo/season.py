"""The season: what users want on each day, and which of it the first release cannot do.

Each family below asks for something that fails for one kind of cause; `PLAIN` is all the rest. What a family is built
to show decides nothing: whether a conversation failed, and what would mend it, is found by running the agent
(`filmroom.demo.truth`).
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from filmroom.demo.agent import OUT_OF_SCOPE, Message
from filmroom.demo.phrases import Pool, phrase_book, say
from filmroom.demo.shop import BROKEN_SHOP, START
from filmroom.demo.users import CONTRADICTORY, PICKUP_USERS, SLOT_USERS, USERS

PLAIN = "plain"
CHANNEL = "chat"

SHARES = {
    "return_words": 0.07,
    "exchange_words": 0.07,
    "confirm_cancel": 0.05,
    "delivery_window": 0.05,
    "pickup_shop": 0.05,
    "delivery_slot": 0.04,
    "order_case": 0.05,
    "date_format": 0.04,
    "stock_feed": 0.03,
    "unknown_order": 0.02,
    "contradiction": 0.01,
}
"""Family to its share of a day's conversations.

Weights: `return_words` (words the model never saw), `exchange_words` (a class that drifts from day 3 to day 8).
Context: `confirm_cancel`, `delivery_window` (rules nobody gave the agent).
Memory: `pickup_shop`, `delivery_slot` (what a user said on the first day).
Tooling: `order_case` (`a-1042`), `date_format` (`24.04.2026`), `stock_feed` (a feed that breaks: a ticket).
None: `unknown_order` (a tool error that is the user's own), `contradiction` (a user who calls right answers wrong, now
this way and now that), and a day's outage of `get_order` that hits everybody.
"""

PLAIN_INTENTS = {
    "opening_hours": 5,
    "change_address": 4,
    "reschedule_delivery": 4,
    "return_item": 5,
    "exchange_item": 5,
    "refund_status": 5,
    "stock_check": 5,
    "pickup": 5,
    "invoice": 4,
    "set_preference": 1,
    OUT_OF_SCOPE: 2,
}
"""Intent to its weight among the plain conversations."""

DOTTED = 0.4
"""Share of the base training's dates that are written `24.04.2026`: the model reads them, the tool does not."""

INTENTS = {
    "return_words": "return_item",
    "exchange_words": "exchange_item",
    "confirm_cancel": "cancel_order",
    "delivery_window": "order_status",
    "pickup_shop": "pickup",
    "delivery_slot": "reschedule_delivery",
    "date_format": "reschedule_delivery",
    "stock_feed": "stock_check",
    "contradiction": "pickup",
    "statement": "set_preference",
}


@dataclass(frozen=True)
class Request:
    """One message, and what its user wants by it."""

    message: Message
    day: int
    family: str
    intent: str
    shop: str | None
    """The pickup shop this user has asked for, on the first day; None: any."""
    slot: str | None
    """The delivery slot this user has asked for, on the first day; None: any."""


@dataclass(frozen=True)
class Day:
    """One day of the season, in order of time."""

    number: int
    """0 is the first."""
    date: date
    requests: tuple[Request, ...]

    @property
    def ends(self) -> datetime:
        """Midnight at its end, UTC."""
        return datetime.combine(self.date, time.min, UTC) + timedelta(days=1)


def season(seed: int = 0, *, days: int = 16, per_day: int = 90) -> Iterator[Day]:
    """The days of a season, one after the other; the same seed gives the same season."""
    for number in range(days):
        yield _day(seed, number, per_day)


def base_training(seed: int = 0, *, per_intent: int = 50) -> list[tuple[str, str]]:
    """Text and intent of the rows the first model is trained on: `per_intent` different texts of each of 13 intents.

    >>> len(base_training(per_intent=2))
    26
    """
    rows = []
    for intent, pools in phrase_book().intents.items():
        chance = random.Random(f"base:{seed}:{intent}")
        texts: dict[str, None] = {}
        while len(texts) < per_intent:
            dotted = {"date": _dotted_date(chance)} if chance.random() < DOTTED else {}
            texts[say(chance, chance.choice(pools["base"]), **dotted)] = None
        rows += [(text, intent) for text in texts]
    return rows


def _day(seed: int, number: int, per_day: int) -> Day:
    chance = random.Random(f"season:{seed}:{number}")
    said = _statements() if number == 0 else []
    wishes = said + _wishes(chance, per_day - len(said))
    moments = sorted(chance.randrange(8 * 3600, 20 * 3600) for _ in wishes)
    today = START + timedelta(days=number)
    midnight = datetime.combine(today, time.min, UTC)
    requests = tuple(
        _request(chance, number, place, family, user, midnight + timedelta(seconds=second))
        for place, ((family, user), second) in enumerate(zip(wishes, moments, strict=True))
    )
    return Day(number, today, requests)


def _statements() -> list[tuple[str, str]]:
    return [("statement", user) for user in (*PICKUP_USERS, *SLOT_USERS)]


def _wishes(chance: random.Random, count: int) -> list[tuple[str, str]]:
    families = (*SHARES, PLAIN)
    weights = (*SHARES.values(), 1 - sum(SHARES.values()))
    return [(family, _user(chance, family)) for family in chance.choices(families, weights, k=count)]


def _user(chance: random.Random, family: str) -> str:
    if family == "pickup_shop":
        return chance.choice(tuple(PICKUP_USERS))
    if family == "delivery_slot":
        return chance.choice(tuple(SLOT_USERS))
    if family == "date_format":
        return chance.choice([user for user in USERS if user not in SLOT_USERS])
    if family == "contradiction":
        return CONTRADICTORY
    return chance.choice(USERS)


def _request(chance: random.Random, day: int, place: int, family: str, user: str, at: datetime) -> Request:
    shop, slot = PICKUP_USERS.get(user), SLOT_USERS.get(user)
    intent = _intent(chance, family, user)
    pools = phrase_book().intents[intent]
    sentence = chance.choice(pools[_pool(chance, family, day)])
    text = say(chance, sentence, **_gaps(chance, family, intent))
    if family == "statement":
        text = _statement(chance, shop, slot)
    message = Message(f"talk-{day:02d}-{place:03d}", user, CHANNEL, text, at)
    return Request(message, day, family, intent, shop, slot)


def _intent(chance: random.Random, family: str, user: str) -> str:
    if family in ("order_case", "unknown_order"):
        return chance.choice(("refund_status", "invoice"))
    if family in INTENTS:
        return INTENTS[family]
    kept = {name: weight for name, weight in PLAIN_INTENTS.items() if not _needs_memory(name, user)}
    return chance.choices(tuple(kept), tuple(kept.values()))[0]


def _needs_memory(intent: str, user: str) -> bool:
    return (intent == "pickup" and user in PICKUP_USERS) or (intent == "reschedule_delivery" and user in SLOT_USERS)


def _pool(chance: random.Random, family: str, day: int) -> Pool:
    drifted = family == "exchange_words" and chance.random() < (day - 2) / 6
    if family == "return_words" or drifted:
        return "new"
    return "season" if chance.random() < 0.3 else "base"


def _gaps(chance: random.Random, family: str, intent: str) -> dict[str, str]:
    if family == "order_case":
        return {"order": f"a-{chance.randrange(1000, 8000)}"}
    if family == "unknown_order":
        return {"order": f"A-{chance.randrange(8000, 10000)}"}
    if family == "date_format":
        return {"date": _dotted_date(chance)}
    if family == "stock_feed":
        return {"shop": BROKEN_SHOP}
    if intent == "stock_check":
        return {"shop": chance.choice([shop for shop in phrase_book().shops if shop != BROKEN_SHOP])}
    return {}


def _dotted_date(chance: random.Random) -> str:
    return f"{chance.randrange(1, 29)}.04.2026"


def _statement(chance: random.Random, shop: str | None, slot: str | None) -> str:
    gap = "{shop}" if shop else "{slot}"
    sentences = [line for line in phrase_book().intents["set_preference"]["base"] if gap in line]
    return say(chance, chance.choice(sentences), shop=shop or "", slot=slot or "")
