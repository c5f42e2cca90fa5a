"""A trial: a correction's change and the live release, on the same cases, asked of the same hook."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from pydantic import JsonValue
from sqlalchemy import Connection

from flows.replay.child import ChildHook
from flows.replay.hook import Asked, Hook, HookFailed
from flows.replay.preview import Served, preview
from flows.replay.recorded import case_for_check, recorded_calls, replayed_calls
from flows.replay.url import UrlHook
from flows.route import CASES
from flows.targets import FLOWS
from flows.workspace import Workspace
from models.replay import judge_answer, judge_replay
from store.corrections import correction, waiting
from store.errors import FilmroomError, NotAllowed, Refused
from store.failures import cases_of, cluster
from store.ledger import record_event
from store.records import Cluster, Correction, Episode, Operation, Record, Replay, ReplayResult, content_hash
from store.replays import put_replay, replay_of, replays_of
from store.settings import Settings
from store.traces import episodes, satisfied_ids


class Replayed(Record):
    """What the replay stage did in a turn."""

    replays: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()

    def markdown(self) -> str:
        return "\n".join(f"* {line}" for line in self.lines) or "Nothing was replayed."


class Plan(NamedTuple):
    """What is asked: the cases of the cluster, its satisfied neighbours, and both releases."""

    each: Cluster
    episodes: tuple[tuple[str, Episode], ...]
    """`case` or `neighbour`, and the trace."""
    served: dict[str, Served]
    """`fix` and `control`."""
    release_id: str


def replay_waiting(workspace: Workspace) -> Replayed:
    """Try every correction that waits and lacks nothing, once for each change and release. Without a hook: nothing."""
    if workspace.settings.agent.replay is None:
        return Replayed()
    with workspace.store.read() as connection:
        queue = [found for found, _, _ in waiting(connection, workspace.project) if _is_complete(found)]
    done, lines = [], []
    for found in queue[: workspace.policy.queue_cap]:
        try:
            replay = replay_correction(workspace, found.id)
        except FilmroomError as error:
            lines.append(f"{found.id}: not replayed: {error}")
            continue
        if replay is not None:
            done.append(replay.id)
            lines.append(f"{found.id}: {replay.sentence}")
    return Replayed(replays=tuple(done), lines=tuple(lines))


def replay_correction(
    workspace: Workspace, correction_id: str, *, operations: Sequence[Operation] | None = None, again: bool = False
) -> Replay | None:
    """Try the correction's change (or `operations`) and keep what came of it; one that was made already is not made again.

    None: no hook is set, or the change is of the weights, which filmroom judges by itself. Raises NotAllowed for what lacks
    something, Refused where the change cannot be applied at all.
    """
    hook_settings = workspace.settings.agent
    with workspace.store.read() as connection:
        found = correction(connection, workspace.project, correction_id)
    deltas = operations if operations is not None else _complete_operations(found)
    if hook_settings.replay is None or deltas[0].target == "weights":
        return None
    plan = _planned(workspace, found, deltas)
    digest = digest_of(deltas)
    with workspace.store.read() as connection:
        known = replay_of(connection, found.id, digest, plan.release_id)
    if known is not None and not again:
        return known
    hook = open_hook(workspace)
    started = time.perf_counter()
    try:
        results = _asked(workspace, hook, plan)
    finally:
        hook.close()
    judged = judge_replay(results)
    value = Replay(
        project=workspace.project, correction_id=found.id, digest=digest, release_id=plan.release_id,
        at_us=workspace.clock(), hook=hook.name, verdict=judged.verdict, sentence=judged.sentence,
        numbers={**judged.numbers, "checked": float(hook_settings.check is not None)},
        cost_usd=sum(each.cost_usd or 0.0 for each in results), seconds=round(time.perf_counter() - started, 3),
    )  # fmt: skip
    with workspace.write() as connection:
        put_replay(connection, value, results)
        record_event(connection, workspace.project, at_us=value.at_us, actor=workspace.actor, event="replayed",
                     subject=value.id, reason=value.sentence, causes=[found.id], detail=value.numbers)  # fmt: skip
    return value


def tried(connection: Connection, found: Correction, operations: Sequence[Operation]) -> Replay | None:
    """The newest replay of exactly this change, over whichever release; None: it was not replayed.

    Raises Refused where it does harm, or repairs nothing by the user's own check, or by the tool's own error.
    """
    digest = digest_of(operations)
    known = next((each for each in replays_of(connection, found.id) if each.digest == digest), None)
    if known is None:
        return None
    is_sure = bool(known.numbers.get("checked")) or operations[0].target == "tooling"
    if known.verdict == "harms" or (known.verdict == "no_effect" and is_sure):
        raise Refused(f"replay {known.id}: {known.sentence}; reject it, reroute it, or give another answer")
    return known


def digest_of(operations: Sequence[Operation]) -> str:
    """Names a change by its deltas."""
    return content_hash([each.model_dump(mode="json") for each in operations])


def open_hook(workspace: Workspace) -> Hook:
    """The hook of the settings: a URL, or a function in a child process."""
    return hook_of(workspace.settings)


def probe(settings: Settings) -> str:
    """Whether the hook can be loaded, without asking it anything; of a URL only its name is known. Raises NotAllowed."""
    hook = hook_of(settings)
    try:
        return hook.probe()
    except HookFailed as error:
        raise NotAllowed(f"[agent] replay: {hook.name}: {error}") from error
    finally:
        hook.close()


def hook_of(settings: Settings) -> Hook:
    """The hook that these settings name. Raises NotAllowed where they name none."""
    agent = settings.agent
    if agent.replay is None:
        raise NotAllowed("there is no `[agent] replay` in the settings")
    if agent.replay.startswith(("http://", "https://")):
        return UrlHook(agent.replay, timeout_s=agent.replay_timeout_s, safe=agent.safe_tools)
    return ChildHook(
        agent.replay,
        python=agent.python,
        home=settings.home,
        check=agent.check,
        timeout_s=agent.replay_timeout_s,
        safe=agent.safe_tools,
    )


def _planned(workspace: Workspace, found: Correction, operations: Sequence[Operation]) -> Plan:
    agent = workspace.settings.agent
    with workspace.store.read() as connection:
        each = cluster(connection, found.cluster_id)
        if each is None:
            raise NotAllowed(f"the cluster of {found.id} is gone")
        cases = [case.episode for case in cases_of(connection, each.id, CASES)][: agent.replay_cases]
        ids = satisfied_ids(connection, workspace.project, limit=agent.replay_neighbours)
        near = episodes(connection, ids)
    asked = [("case", episode) for episode in cases] + [("neighbour", episode) for episode in near]
    served = preview(workspace, operations, users=[(each.trace.user, each.trace.tenant) for _, each in asked])
    return Plan(each, tuple(asked), served, served["control"].release_id)


def _asked(workspace: Workspace, hook: Hook, plan: Plan) -> list[ReplayResult]:
    agent = workspace.settings.agent
    pool = [episode for _, episode in plan.episodes]
    spent = _Spent(agent.replay_cost_usd)
    todo = [
        (role, episode, arm, repeat)
        for role, episode in plan.episodes
        for repeat in range(agent.replay_repeats)
        for arm in ("control", "fix")
    ]

    def one(item: tuple[str, Episode, str, int]) -> ReplayResult:
        role, episode, arm, repeat = item
        asked = Asked(
            input=episode.trace.input,
            release=plan.served[arm].document_for(episode.trace.user, episode.trace.tenant),
            recorded=recorded_calls(episode, pool),
            case=case_for_check(episode),
        )
        base: dict[str, Any] = {"trace_id": episode.trace.id, "role": role, "arm": arm, "repeat": repeat}
        return _result(
            base, hook, asked, episode, plan.each, workspace.tools.get(plan.each.fingerprint.component), spent
        )

    with ThreadPoolExecutor(agent.replay_workers) as threads:
        return list(threads.map(one, todo))


def _result(
    base: dict[str, Any], hook: Hook, asked: Asked, episode: Episode, each: Cluster, schema: JsonValue, spent: "_Spent"
) -> ReplayResult:
    if spent.is_over:
        return ReplayResult(**base, outcome="not_measured", why="the cost cap was reached")
    started = time.perf_counter()
    try:
        answer = hook.ask(asked)
    except HookFailed as error:
        took = round(time.perf_counter() - started, 3)
        return ReplayResult(**base, outcome="not_measured", why=f"the hook failed: {error}"[:300], seconds=took)
    spent.add(answer.cost_usd)
    made: dict[str, Any] = {
        **base, "cost_usd": answer.cost_usd, "seconds": round(time.perf_counter() - started, 3), "output": answer.output
    }  # fmt: skip
    if answer.missing:
        names = ", ".join(sorted(set(answer.missing)))[:200]
        return ReplayResult(**made, outcome="not_measured", why=f"a call that is not recorded: {names}")
    if answer.right is not None:
        return ReplayResult(**made, outcome="right" if answer.right else "wrong")
    is_case = base["role"] == "case"
    calls = replayed_calls(answer.calls, episode)
    outcome = judge_answer(each.fingerprint, episode, output=answer.output, calls=calls, is_case=is_case, schema=schema)
    why = "" if outcome != "not_measured" else "nothing says what would be right: set `[agent] check`"
    return ReplayResult(**made, outcome=outcome, why=why)


class _Spent:
    """What the answers so far say they cost."""

    def __init__(self, cap_usd: float) -> None:
        self._cap_usd = cap_usd
        self._sum = 0.0
        self._lock = threading.Lock()

    def add(self, cost_usd: float | None) -> None:
        with self._lock:
            self._sum += cost_usd or 0.0

    @property
    def is_over(self) -> bool:
        return self._sum >= self._cap_usd > 0 or (self._cap_usd == 0 and self._sum > 0)


def _is_complete(found: Correction) -> bool:
    return found.proposal is not None and found.proposal.needs_answer is None and found.proposal.target != "weights"


def _complete_operations(found: Correction) -> Sequence[Operation]:
    if found.proposal is None or found.proposal.needs_answer or not found.proposal.operations:
        needed = "a place" if found.proposal is None else found.proposal.needs_answer
        raise NotAllowed(f"{found.id} cannot be replayed before it has what it needs: {needed}")
    return FLOWS[found.proposal.target].answered(found.proposal, None, reviewer="replay").operations
