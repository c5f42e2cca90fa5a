"""One day on stage: the agent answers everybody who writes, with what is served on that day."""

from filmroom.demo.agent import converse
from filmroom.demo.season import Day
from filmroom.demo.served import Served
from filmroom.demo.shop import Shop
from filmroom.demo.truth import Conversation, judged


def play(day: Day, served: Served, shop: Shop) -> tuple[Conversation, ...]:
    """The conversations of `day`, each with its native line (`reply.trace`) and with what is true of it."""
    played = []
    for request in day.requests:
        reply = converse(request.message, served, shop)
        played.append(judged(request, reply, served, shop))
    return tuple(played)
