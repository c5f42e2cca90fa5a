"""What the shop's people say of the conversations: users by thumb and in their own words, staff by correction.

They speak from the truth of a conversation, some of them, some of the time, up to two days later; a few press the
wrong thumb, and one user contradicts himself. What they say follows from the conversation's id.
"""

import random
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from filmroom.demo.agent import OUT_OF_SCOPE
from filmroom.demo.log import iso
from filmroom.demo.phrases import phrase_book
from filmroom.demo.season import Request
from filmroom.demo.shop import START
from filmroom.demo.truth import Conversation
from filmroom.demo.users import CONTRADICTORY, STAFF, talkativeness
from store.records import TARGETS, Target

MAX_DELAY_DAYS = 2
DELAYS = (0, 0, 0, 0, 0, 0, 1, 1, 1, 2)
"""Days until somebody says something, equally likely."""

WRONG_THUMB = 0.02
"""Share of thumbs that say the opposite of what was meant."""

PRAISE = 0.5
"""A content user is so much less likely to say something than a discontented one."""

COMMENTED = 0.7
"""Share of the thumbs down with a word beside them."""

PICKED = 0.7
"""Share of the misunderstood users who pick what they wanted from the list of topics that the chat offers them."""

AUDITED_FAILED, AUDITED_OK = 0.4, 0.05
"""Share of the failed and of the right conversations that staff read."""

POLICIES = {
    "cancel_order": "Always confirm before cancelling an order.",
    "order_status": "Always name the delivery window when you give the status of an order.",
}
"""Intent to the shop's rule for it, in the words of its staff."""

WISHES = {
    "order_status": "know where my parcel is",
    "cancel_order": "cancel it",
    "change_address": "have it sent to another address",
    "reschedule_delivery": "have it on another day",
    "return_item": "give it back",
    "exchange_item": "have another one in its place",
    "refund_status": "know about my refund",
    "stock_check": "know whether you have it",
    "pickup": "know where to collect it",
    "set_preference": "have that noted",
    "opening_hours": "know when you are open",
    "invoice": "have the invoice",
    OUT_OF_SCOPE: "chat",
}
"""Intent to what its user wants, as the end of "I want to"."""

_ANNOYED = {"cancel_order": "I did not mean at once!", "order_status": "And between which hours?"}

_MALFORMED = {
    "order_case": "The order number is right, in small letters.",
    "date_format": "The date is right, written with dots.",
    "stock_feed": "The tool has no figure for this shop: its stock feed is broken.",
}


def feedback_due(conversations: Iterable[Conversation], day: int) -> list[dict[str, Any]]:
    """The native feedback lines given on day `day`, in order of time; `conversations` are all those of the season so far."""
    recent = (talk for talk in conversations if day - MAX_DELAY_DAYS <= talk.request.day <= day)
    lines = [line for talk in recent for line in opinions(talk)]
    today = (START + timedelta(days=day)).isoformat()
    return sorted((line for line in lines if line["given"].startswith(today)), key=lambda line: str(line["given"]))


def opinions(talk: Conversation) -> list[dict[str, Any]]:
    """All that will ever be said of a conversation, as native feedback lines: at most one by its user, one by staff."""
    chance = random.Random(f"opinion:{talk.id}:{talk.request.message.text}")
    said = _contradiction(chance, talk) if talk.request.message.user == CONTRADICTORY else _user(chance, talk)
    return [line for line in (said, _staff(chance, talk)) if line is not None]


def cause(talk: Conversation) -> Target | None:
    """The first target that would have mended it; None: it was right, or no single change would have."""
    return next((target for target in TARGETS if target in talk.mends), None)


def _line(chance: random.Random, talk: Conversation, principal: str, **fields: Any) -> dict[str, Any]:
    given = talk.request.message.at + timedelta(days=chance.choice(DELAYS), minutes=chance.randrange(5, 180))
    return {
        "type": "feedback",
        "id": f"{talk.id}-{principal}",
        "trace": talk.id,
        "principal": principal,
        "source_kind": "human",
        "given": iso(given),
        **fields,
    }


def _user(chance: random.Random, talk: Conversation) -> dict[str, Any] | None:
    user = talk.request.message.user
    willing = talkativeness(user) * (PRAISE if talk.ok else 1)
    if chance.random() >= willing:
        return None
    content = talk.ok != (chance.random() < WRONG_THUMB)
    if content or talk.ok:
        return _line(chance, talk, user, name="thumb", score=float(content))
    words = _complaint(chance, talk) if chance.random() < COMMENTED else {}
    return _line(chance, talk, user, name="thumb", score=0.0, **words)


def _complaint(chance: random.Random, talk: Conversation) -> dict[str, Any]:
    """What a user writes under a thumb that is down."""
    wanted, place = talk.request, cause(talk)
    if place == "weights":
        picked = {**_about(talk, "predict"), "corrected_output": wanted.intent} if chance.random() < PICKED else {}
        return {"comment": f"That is not what I asked. I want to {WISHES[wanted.intent]}.", **picked}
    if place == "context":
        return {"comment": _ANNOYED.get(wanted.intent, "Why do you ask?")}
    if place == "memory":
        return {"comment": _reminder(wanted), "corrected_output": _wish(talk)}
    return {"comment": "That did not work, but what I wrote is right."}


def _wish(talk: Conversation) -> str:
    """What the user has asked to be remembered, in a word; where they never asked for anything, the right answer."""
    return talk.request.shop or talk.request.slot or talk.right


def _reminder(wanted: Request) -> str:
    if wanted.shop is not None:
        return f"As I told you, I pick up at the {wanted.shop} shop."
    if wanted.slot is not None:
        return f"As I told you, I am at home in the {wanted.slot}."
    return "I never asked for that."


def _contradiction(chance: random.Random, talk: Conversation) -> dict[str, Any] | None:
    if talk.request.intent != "pickup":
        return _user(chance, talk)
    shop = chance.choice([name for name in phrase_book().shops if name not in talk.reply.text])
    comment = f"No, I pick up at the {shop} shop."
    return _line(chance, talk, CONTRADICTORY, name="thumb", score=0.0, comment=comment, corrected_output=shop)


def _staff(chance: random.Random, talk: Conversation) -> dict[str, Any] | None:
    if chance.random() >= (AUDITED_OK if talk.ok else AUDITED_FAILED):
        return None
    reviewer = chance.choice(STAFF)
    if talk.ok:
        return _line(chance, talk, reviewer, name="review", score=1.0)
    return _line(chance, talk, reviewer, name="review", score=0.0, **_correction(talk))


def _correction(talk: Conversation) -> dict[str, Any]:
    """What a member of staff writes of a conversation that failed."""
    wanted, place = talk.request, cause(talk)
    if place == "weights" or talk.reply.intent != wanted.intent:
        comment = f"The customer wants to {WISHES[wanted.intent]}."
        return {**_about(talk, "predict"), "corrected_output": wanted.intent, "comment": comment}
    if place == "context":
        comment = POLICIES.get(wanted.intent, "Do not ask here, the customer has said what to do.")
        return {"corrected_output": talk.right, "comment": comment}
    if place == "memory":
        wish = (
            f"the {wanted.shop} shop" if wanted.shop else f"the {wanted.slot}" if wanted.slot else "nothing of the kind"
        )
        return {"corrected_output": talk.right, "comment": f"This customer has asked for {wish} before."}
    if place == "tooling":
        comment = _MALFORMED.get(wanted.family, "The tool should have taken this.")
        return {**_about(talk, "tool"), "comment": comment}
    return {"comment": "Not the customer's fault, we could not do it at that moment."}


def _about(talk: Conversation, kind: str) -> dict[str, str]:
    """The last step of a kind as what a feedback is about; empty: there was no such step."""
    found = [span["id"] for span in talk.reply.trace["spans"] if span["kind"] == kind]
    return {"span": found[-1]} if found else {}
