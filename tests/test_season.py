"""The demo's whole season: what was corrected no longer fails, and what cannot be corrected is left alone."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from filmroom.demo.play import play_season

MENDED = ("return_words", "exchange_words", "confirm_cancel", "delivery_window", "pickup_shop", "delivery_slot",
          "order_case", "date_format", "stock_feed")  # fmt: skip


@contextmanager
def unseen(_told: str, _total: int | None) -> Iterator[Callable[[int], None]]:
    yield lambda _done: None


@pytest.fixture(scope="module")
def season(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return play_season(tmp_path_factory.mktemp("season") / "demo", progress=unseen)


@pytest.mark.slow
@pytest.mark.parametrize("family", MENDED)
def test_each_kind_of_failure_is_mended_for_the_most_part(season: dict[str, Any], family: str) -> None:
    (before, of), (after, _) = season["before"][family], season["after"][family]
    assert before == of
    assert after <= of / 3


@pytest.mark.slow
def test_what_was_right_stays_right(season: dict[str, Any]) -> None:
    assert season["after"]["plain"][0] <= season["before"]["plain"][0]


@pytest.mark.slow
def test_each_place_got_corrections_and_the_model_was_promoted(season: dict[str, Any]) -> None:
    live = {each["target"] for each in season["changes"] if each["state"] == "live"}
    assert live == {"context", "memory", "tooling", "weights"}
    assert {"promoted", "skipped"} <= {each["decision"] for each in season["retrains"]}
    assert "check_stock" in season["tickets"]
