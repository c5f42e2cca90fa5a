"""The world of the agent: orders, stock, and four tools with real answers and real errors.

A tool is a function of its arguments and the time alone: nothing that the agent does changes an order, so that any
conversation can be played again.
"""

import json
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Any

START = date(2026, 3, 2)
"""First day of the season."""

DEFAULT_SHOP = "Market Square"
DEFAULT_SLOT = "morning"
BROKEN_SHOP = "Harbour"
"""The shop whose stock feed breaks."""

FIRST_ORDER, LAST_ORDER = 1000, 7999
WINDOWS = ("08:00-10:00", "10:00-12:00", "14:00-16:00", "17:00-19:00")


class ToolError(Exception):
    """A tool refuses or fails."""

    error_type = "ToolError"


class ValidationError(ToolError):
    """An argument breaks the tool's schema."""

    error_type = "ValidationError"


class NotFoundError(ToolError):
    """There is no such order."""

    error_type = "NotFound"


class UnavailableError(ToolError):
    """The tool does not answer for the moment."""

    error_type = "ServiceUnavailable"


@cache
def tool_schemas() -> dict[str, Any]:
    """Tool name to `{"description", "parameters", "output"}`; the last two are JSON schemas."""
    text = files("filmroom.demo").joinpath("tools.json").read_text(encoding="utf-8")
    schemas: dict[str, Any] = json.loads(text)
    return schemas


@dataclass(frozen=True)
class Shop:
    """The shop on any day of its season. `repaired`: tools whose owner has mended them after a ticket."""

    seed: int = 0
    start: date = START
    outage_day: int | None = 6
    """Day (0 is the first) on which `get_order` is down from 11 to 17 o'clock; None: never."""
    feed_breaks_day: int | None = 2
    """Day from which the stock feed of one shop delivers nothing; None: never."""
    repaired: frozenset[str] = frozenset()

    def healthy(self) -> "Shop":
        """The same shop without its outage and with its feed mended."""
        return replace(self, outage_day=None, feed_breaks_day=None)

    def call(self, tool: str, arguments: Mapping[str, Any], *, now: datetime) -> dict[str, Any]:
        """What `tool` answers at `now`. Raises ToolError where it refuses or fails."""
        check_arguments(tool, arguments)
        if tool == "check_stock":
            return self._stock(str(arguments["item"]), str(arguments["shop"]), now)
        order = self._order(str(arguments["order_id"]))
        if tool == "get_order":
            return self._get_order(order, now)
        if tool == "create_return":
            return {"return_id": f"R-{order['order_id'][2:]}"}
        return {"order_id": order["order_id"], "changed": arguments["change"]}

    def _order(self, order_id: str) -> dict[str, Any]:
        if not FIRST_ORDER <= int(order_id[2:]) <= LAST_ORDER:
            raise NotFoundError(f"order {order_id} not found")
        chance = random.Random(f"{self.seed}:{order_id}")
        delivery = self.start + timedelta(days=chance.randrange(5, 30))
        return {
            "order_id": order_id,
            "status": chance.choice(("being packed", "on its way", "ready at our depot")),
            "delivery_date": delivery.isoformat(),
            "window": chance.choice(WINDOWS),
            "refund": chance.choice(("approved", "being checked", "paid")),
        }

    def _get_order(self, order: dict[str, Any], now: datetime) -> dict[str, Any]:
        down = self.outage_day == (now.date() - self.start).days and 11 <= now.hour < 17
        if down:
            raise UnavailableError("503 Service Unavailable: get_order does not answer")
        return order

    def _stock(self, item: str, shop: str, now: datetime) -> dict[str, Any]:
        quantity = random.Random(f"{self.seed}:{item}:{shop}:{now.date()}").randrange(0, 9)
        broken_since = self._broken_since(shop)
        if broken_since is None or now.date() < broken_since:
            return {"quantity": quantity, "as_of": now.isoformat()}
        return {"quantity": None, "as_of": f"{broken_since.isoformat()}T00:00:00+00:00"}

    def _broken_since(self, shop: str) -> date | None:
        if shop != BROKEN_SHOP or self.feed_breaks_day is None or "check_stock" in self.repaired:
            return None
        return self.start + timedelta(days=self.feed_breaks_day)


def check_arguments(tool: str, arguments: Mapping[str, Any]) -> None:
    """Raise ValidationError, naming argument and value, for the first that breaks the tool's schema."""
    schema = tool_schemas()[tool]["parameters"]
    for name in schema["required"]:
        if arguments.get(name) is None:
            raise ValidationError(f"{tool}: {name} is required")
    for name, value in arguments.items():
        _check_value(tool, name, value, schema["properties"].get(name))


def _check_value(tool: str, name: str, value: object, schema: Mapping[str, Any] | None) -> None:
    if schema is None:
        raise ValidationError(f"{tool}: {name} is not an argument")
    if not isinstance(value, str):
        raise ValidationError(f"{tool}: {name} must be a string, not {value!r}")
    if "enum" in schema and value not in schema["enum"]:
        raise ValidationError(f"{tool}: {name} {value!r} is not one of {', '.join(schema['enum'])}")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        raise ValidationError(f"{tool}: {name} {value!r} does not match {schema['pattern']}")
