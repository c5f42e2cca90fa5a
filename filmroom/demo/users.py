"""The shop's users: invented first names, what some have asked for, and how often each says what they think."""

import random

from filmroom.demo.phrases import phrase_book

USERS = phrase_book().users
"""User ids, 60."""

PICKUP_USERS = {
    "abeke": "Harbour",
    "bente": "Mill Lane",
    "dorian": "Station",
    "fenna": "Harbour",
    "idris": "Mill Lane",
    "kaja": "Harbour",
}
"""User to the pickup shop they ask for on the first day."""

SLOT_USERS = {"lorcan": "evening", "nadja": "afternoon", "olwen": "evening", "radka": "evening", "tamsin": "afternoon"}
"""User to the delivery slot they ask for on the first day."""

CONTRADICTORY = "viktor"
"""The user who calls right answers wrong, now this way and now that."""

STAFF = ("staff:marit", "staff:osric")
"""The shop's two reviewers, as principals."""


def talkativeness(user: str) -> float:
    """Probability that a user says something after a bad conversation: 0 for two in five, who never do."""
    if user in PICKUP_USERS or user in SLOT_USERS:
        return 0.8
    return random.Random(f"talk:{user}").choice((0.0, 0.0, 0.3, 0.5, 0.7))
