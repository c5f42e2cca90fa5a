"""What a log does not say: what that switches off, and what to do about it."""

from store.sources.findings import Findings, Unknown


def unknowns_of(found: Findings) -> tuple[Unknown, ...]:
    """What these findings lack, what blocks most first."""
    corrected = any(name.corrected for name in found.feedback_names)
    unclear = [name.name for name in found.feedback_names if name.good is None and name.lowest is not None]
    rejected = f"pieces that cannot be read: {found.rejected}, first {found.first_rejection}"
    checks = (
        (rejected, found.rejected > 0, _REJECTED),
        ("the time zone of times without an offset", found.without_offset, _TIMEZONE),
        ("the traces themselves: there is feedback alone", found.traces == 0 and found.feedback > 0, _TRACES),
        ("which answers were wrong: there is no feedback", found.feedback == 0, _FEEDBACK),
        *((f'whether a high `{name}` is good: `good = "high"` is a guess', True, _POLARITY) for name in unclear),
        ("what should have been answered: no corrected outputs", found.feedback > 0 and not corrected, _CORRECTED),
        ("when: no trace has a time", found.traces > 0 and found.with_time == 0, _TIMES),
        ("who: no trace names its user", found.traces > 0 and found.users == 0, _USERS),
        ("which traces belong together: no sessions", found.traces > 0 and found.sessions == 0, _SESSIONS),
        ("which model made the predictions", found.unnamed_model, _MODEL),
        ("what the model was trained on", bool(found.models), _TRAINING),
        ("the tools' schemas", bool(found.tools), _SCHEMAS),
        ("how to run the agent again", found.agent, _REPLAY),
    )
    return tuple(Unknown(what=what, switches_off=off, to_do=todo) for what, holds, (off, todo) in checks if holds)


_REJECTED = (
    "those pieces; they stay in quarantine, and the rest is read",
    "mend the cause (the file, or the settings), then `filmroom ingest --retry`",
)
_TIMEZONE = (
    "nothing: they are read as UTC, and are hours off where the log means another zone",
    'if it does, name it in the settings: `timezone = "Europe/Berlin"` in place of `"UTC"`',
)
_TRACES = (
    "the feedback waits until its traces come",
    "ingest the log with the traces too; `source` says which log this feedback belongs to",
)
_FEEDBACK = (
    "failures are found by errors and behaviour alone, and no fix can be proved to hold",
    "ingest scores, thumbs or labels, also days later and from a file of their own",
)
_POLARITY = (
    "nothing; where a low score is good, praise counts as failure and failure as praise",
    'if it is, set `[feedback.NAME] good = "low"`, and look at its `threshold`',
)
_CORRECTED = (
    "retraining, and rules from what users corrected: a reviewer writes each answer",
    "log the corrected output, or add labels in a file with id and label",
)
_TIMES = (
    "failures per day, the two-day minimum before a retrain, and the watch on a change over time",
    "log the start of each trace, or map its column: `columns = { time = ... }`",
)
_USERS = (
    "memory as a target, and telling many users from one: all evidence counts as one unknown source",
    "log a user id (a pseudonym will do), or map its column: `columns = { user = ... }`",
)
_SESSIONS = (
    "finding users who ask again in other words",
    "log a conversation id, or map its column: `columns = { session = ... }`",
)
_MODEL = ("nothing, while there is one model; with several, theirs cannot be told apart", "set `model` to its name")
_TRAINING = (
    "retraining, novelty and the gate's regression test",
    "set `training` under [weights.NAME] to the CSV or JSONL it was trained on",
)
_SCHEMAS = ("evidence from schema violations", "set `tools` under [agent] to the JSON file with their schemas")
_REPLAY = (
    "measuring a fix before it is live: it goes on probation, and the hold test judges it",
    "set `replay` under [agent] to a function or URL",
)
