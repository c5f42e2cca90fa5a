"""What people write to the shop: sentences with gaps, and the words that fill them."""

import json
import random
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

Pool = Literal["base", "season", "new"]
"""`base`: what the first model was trained on; `season`: the same words in other sentences; `new`: other words."""


@dataclass(frozen=True)
class PhraseBook:
    """The sentences of each intent, and what can stand in their gaps."""

    intents: dict[str, dict[Pool, tuple[str, ...]]]
    openings: tuple[str, ...]
    closings: tuple[str, ...]
    items: tuple[str, ...]
    shops: tuple[str, ...]
    slots: tuple[str, ...]
    users: tuple[str, ...]


@cache
def phrase_book() -> PhraseBook:
    """The phrase book shipped with the package."""
    raw = json.loads(files("filmroom.demo").joinpath("phrases.json").read_text(encoding="utf-8"))
    intents = {
        intent: {pool: tuple(lines) for pool, lines in pools.items()} for intent, pools in raw.pop("intents").items()
    }
    return PhraseBook(intents=intents, **{name: tuple(lines) for name, lines in raw.items()})


def say(chance: random.Random, sentence: str, **gaps: str) -> str:
    """`sentence` with its gaps filled, at random where `gaps` does not say, and perhaps a greeting around it."""
    book = phrase_book()
    drawn = {
        "order": f"A-{chance.randrange(1000, 8000)}",
        "date": f"2026-04-{chance.randrange(1, 29):02d}",
        "item": chance.choice(book.items),
        "shop": chance.choice(book.shops),
        "slot": chance.choice(book.slots),
    }
    middle = sentence.format(**{**drawn, **gaps})
    text = chance.choice(book.openings) + middle + chance.choice(book.closings)
    return text[0].upper() + text[1:]
