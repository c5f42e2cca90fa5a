"""Everybody wants the answer in another form than the prompt asks for."""

from benchmarks.fault_scenario import Draw, Family, Scenario
from benchmarks.fault_shop import SHOP

FORMS = (
    ("{line} Reference: {{order_id}}", "the reference must be in the answer"),
    ("Dear customer, {line}", "answers should begin politely"),
    ("{line} Best regards, the shop", "always sign the answer"),
)


def draw(with_: Draw) -> Scenario:
    name, (form, said) = with_.intent("tool"), with_.one(FORMS)
    return Scenario(
        world=with_.world,
        ideal=with_.ideal.changed(lines={name: ((0.0, form.format(line=SHOP[name].line)),)}),
        hit=with_.requests(with_.size(), intents=[name]),
        comments=(said, said, "not how we write"),
        answers=0.7,
    )


FAMILY = Family("answer_format", draw)
