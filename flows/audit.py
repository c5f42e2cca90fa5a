"""The audit stream: a few traces a week, drawn uniformly whatever was said of them, judged by a person.

It is the only unbiased estimate of how often the program fails, and of how many failures are seen.
"""

from flows.detector import in_force
from flows.workspace import Workspace
from models.maturity import matures_after
from models.sequential import wilson
from store.audit_stream import AUDIT, audited, drawable, label_delays
from store.errors import NotFound
from store.ingest import ingest
from store.ledger import record_event
from store.records import Feedback, Record
from store.records.identity import short_hash
from store.traces import traces_of

A_WEEK = 30
"""Traces drawn a week."""
WEEKS = 4
"""Weeks that are looked back."""
WEEK_US = 7 * 86_400_000_000
DAY_US = 86_400_000_000


class Share(Record):
    """A share with its Wilson interval."""

    hits: int
    of: int
    low: float
    high: float

    @property
    def text(self) -> str:
        if not self.of:
            return "not measured"
        return f"{self.hits / self.of:.0%} ({self.hits} of {self.of}; {self.low:.0%} to {self.high:.0%})"


class AuditReport(Record):
    """What the audits show so far, and what waits."""

    drawn: int
    judged: int
    waiting: tuple[str, ...]
    """Traces to judge, newest week first."""
    failure_rate: Share
    recall: Share
    """Of the traces that an audit calls bad: those that had been picked up before."""
    precision: Share
    """Of the audited traces that had been picked up: those that the audit calls bad."""
    matures_days: float | None
    """Days after which 90 % of the labels are in; None: too few have come to tell."""
    detector: str
    """Version of the weights in force."""
    detector_reason: str
    """Why these: how well they predict audits they did not learn from."""
    to_yes: str


def report(workspace: Workspace) -> AuditReport:
    """The audits so far. The draw is the same whenever it is asked for: traces of a week with the smallest keyed hashes."""
    since_us = workspace.clock() - WEEKS * WEEK_US
    with workspace.store.read() as connection:
        open_ = drawable(connection, workspace.project, since_us=since_us)
        said = audited(connection, workspace.project)
        came, waiting = label_delays(connection, workspace.project, since_us=since_us, now_us=workspace.clock())
        detector = in_force(connection, workspace.project)
    weeks: dict[int, list[str]] = {}
    for each in open_:
        weeks.setdefault(each.started_us // WEEK_US, []).append(each.trace_id)
    seed = str(workspace.settings.seed)
    drawn = [
        trace_id
        for week in sorted(weeks, reverse=True)
        for trace_id in sorted(weeks[week], key=lambda each: short_hash("audit stream", seed, each))[:A_WEEK]
    ]
    judged = {each.trace_id for each in said}
    left = tuple(each for each in drawn if each not in judged)
    bad, found = [each for each in said if not each.good], [each for each in said if each.found]
    mature = matures_after([float(each) for each in came], [float(each) for each in waiting])
    return AuditReport(
        drawn=len(drawn),
        judged=len(judged),
        waiting=left,
        failure_rate=_share(len(bad), len(said)),
        recall=_share(sum(each.found for each in bad), len(bad)),
        precision=_share(sum(not each.good for each in found), len(found)),
        matures_days=None if mature is None else mature / DAY_US,
        detector=detector.combination.version,
        detector_reason=detector.reason,
        to_yes=f"judge these {len(left)} traces (about {max(1, round(len(left) * 40 / 60))} minutes)" if left else "",
    )


def judge_trace(workspace: Workspace, trace_id: str, *, good: bool) -> None:
    """A person's verdict on an audited trace. Raises NotFound."""
    with workspace.store.read() as connection:
        found = traces_of(connection, [trace_id])
    if not found or found[0].project != workspace.project:
        raise NotFound(f"no trace {trace_id}: `filmroom audit` lists those to judge")
    trace = found[0]
    said = Feedback(
        source=trace.source, trace_external_id=trace.external_id, external_id=f"audit:{workspace.actor}",
        project=workspace.project, name=AUDIT, score=1.0 if good else 0.0, principal=workspace.actor,
        given_us=workspace.clock(),
    )  # fmt: skip
    ingest(workspace.store, [said], clock=workspace.clock)
    with workspace.write() as connection:
        record_event(connection, workspace.project, at_us=workspace.clock(), actor=workspace.actor, event="audited",
                     subject=trace_id, detail={"good": good})  # fmt: skip


def _share(hits: int, of: int) -> Share:
    low, high = wilson(hits, of)
    return Share(hits=hits, of=of, low=low, high=high)
