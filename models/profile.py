"""Which profile of thresholds fits what there is."""

from store.records.policy import ProfileName

FORMERLY_RIGHT = 299
"""Rows without a new error that bound new errors to 1 % at 95 % (Clopper-Pearson: 0.05 ** (1 / 299) = 0.99)."""

SOURCES = 5
"""Independent sources the standard profile asks for."""


def choose_profile(*, formerly_right: int, sources: int) -> tuple[ProfileName, str]:
    """`standard`, or `small` where the standard's guarantees cannot be reached, with the sentence that says so.

    `formerly_right`: labelled rows the champion gets right, which the gate can judge new errors on. `sources`: distinct
    known principals that gave feedback.

    >>> choose_profile(formerly_right=120, sources=2)[0]
    'small'
    """
    short = [
        f"{count} {name} and standard needs {needed}"
        for count, name, needed in (
            (formerly_right, "formerly right rows to judge", FORMERLY_RIGHT),
            (sources, "known sources of feedback", SOURCES),
        )
        if count < needed
    ]
    if not short:
        return "standard", f"profile standard: {formerly_right} formerly right rows to judge, {sources} known sources"
    return "small", f"profile small: {'; '.join(short)}; a promotion's verdict prints the bound it reached"
