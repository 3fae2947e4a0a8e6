"""Findings about streams groups.

kind                  severity   when
no_members            error      a group without members has records to do
not_ready             error      a group waits for its topology or its topics, for the least duration of a stall
tasks_without_owner   error      no member has a task that it or another one had or must get, for that long
lag_growing           warning    the lag of a group is larger than it was
rebalancing           warning    a group is not stable for that long, or for half of the last minutes
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from sharelens.groups.schemas import EMPTY, NOT_READY, STREAMS
from sharelens.output.wording import clock, counted, number
from sharelens.parameters.times import lasted
from sharelens.questions.findings.finding import ERROR, WARNING, Finding
from sharelens.questions.findings.streams_signs import UNSETTLED, StreamsSign
from sharelens.questions.groups.words import not_ready_reason, task_name

LEAST_GROWTH, LARGE_SHARE = 10, 0.1
"""As for share groups: growth of less than LEAST_GROWTH records, or of a tenth of the lag, is none."""
TASKS_NAMED = 5
OfSign = Callable[[StreamsSign, int], Iterator[Finding]]


def streams_findings(signs: Sequence[StreamsSign], min_duration_ms: int) -> list[Finding]:
    """All findings, the worst first."""
    return [
        *without_members(signs),
        *not_working(signs, min_duration_ms),
        *growing(signs),
        *rebalancing(signs, min_duration_ms),
    ]


def without_members(signs: Sequence[StreamsSign]) -> list[Finding]:
    """Groups whose coordinator knows no member, with records to do."""
    return _worst_first(_without_members, signs, 0)


def not_working(signs: Sequence[StreamsSign], min_duration_ms: int) -> list[Finding]:
    """Groups that are not ready, and those with tasks that nobody processes."""
    kinds = (_not_ready, _ownerless)
    return list(chain.from_iterable(_worst_first(kind, signs, min_duration_ms) for kind in kinds))


def growing(signs: Sequence[StreamsSign]) -> list[Finding]:
    """Groups with members whose lag is larger than it was."""
    return _worst_first(_growing, signs, 0)


def rebalancing(signs: Sequence[StreamsSign], min_duration_ms: int) -> list[Finding]:
    """Groups that do not come to rest."""
    return _worst_first(_rebalancing, signs, min_duration_ms)


def _worst_first(of_sign: OfSign, signs: Sequence[StreamsSign], min_duration_ms: int) -> list[Finding]:
    rows = chain.from_iterable(of_sign(sign, min_duration_ms) for sign in signs)
    return sorted(rows, key=lambda row: (-(row.size or 0), row.since_ms or 0, row.group_id))


def _without_members(sign: StreamsSign, min_duration_ms: int) -> Iterator[Finding]:
    if sign.state == EMPTY and sign.lag.records:
        text = f"{_lag(sign)}, no members since {clock(sign.since_ms, sign.now_ms)}"
        yield _finding(sign, ERROR, "no_members", text, "describe", size=sign.lag.records)


def _not_ready(sign: StreamsSign, min_duration_ms: int) -> Iterator[Finding]:
    duration_ms = sign.now_ms - sign.since_ms
    if sign.state == NOT_READY and duration_ms >= min_duration_ms:
        reason = not_ready_reason(sign.topology_epoch, sign.validated_topology_epoch)
        since = f"since {clock(sign.since_ms, sign.now_ms)} ({lasted(duration_ms)})"
        text = f"not ready {since}: {reason}; {counted(sign.members, 'member')}"
        yield _finding(sign, ERROR, "not_ready", text, "describe", "--state")


def _ownerless(sign: StreamsSign, min_duration_ms: int) -> Iterator[Finding]:
    until_ms = sign.now_ms - min_duration_ms
    tasks = {task: since_ms for task, since_ms in sign.without_owner.items() if since_ms <= until_ms}
    if tasks and sign.members:
        since_ms = min(tasks.values())
        names = ", ".join(task_name(*task) for task in list(tasks)[:TASKS_NAMED])
        remainder_text = f" and {len(tasks) - TASKS_NAMED} more" if len(tasks) > TASKS_NAMED else ""
        since = f"since {clock(since_ms, sign.now_ms)} ({lasted(sign.now_ms - since_ms)})"
        text = f"{counted(len(tasks), 'active task')} without an owner {since}: {names}{remainder_text}"
        yield _finding(sign, ERROR, "tasks_without_owner", text, "describe", "--tasks", size=len(tasks), since=since_ms)


def _growing(sign: StreamsSign, min_duration_ms: int) -> Iterator[Finding]:
    growth, records = sign.lag.growth, sign.lag.records
    if growth is not None and records is not None and growth >= max(LEAST_GROWTH, LARGE_SHARE * records):
        text = f"{_lag(sign)}, {number(growth)} more than at {clock(sign.window_ms, sign.now_ms)}"
        yield _finding(sign, WARNING, "lag_growing", text, "describe", size=records, since=sign.window_ms)


def _rebalancing(sign: StreamsSign, min_duration_ms: int) -> Iterator[Finding]:
    lasting_ms, window_ms = sign.now_ms - sign.since_ms, sign.now_ms - sign.window_ms
    if sign.state in UNSETTLED and lasting_ms >= min_duration_ms:
        text = f"not stable since {clock(sign.since_ms, sign.now_ms)} ({lasted(lasting_ms)}), "
        text += f"{counted(sign.epochs, 'group epoch')} since then"
        yield _finding(sign, WARNING, "rebalancing", text, "rebalances")
    elif sign.members and sign.unsettled_ms >= max(1, min_duration_ms, window_ms // 2):
        text = f"not stable for {lasted(sign.unsettled_ms)} of the last {lasted(window_ms)}, "
        text += f"{counted(sign.window_epochs, 'group epoch')} in that time"
        yield _finding(sign, WARNING, "rebalancing", text, "rebalances", since=sign.window_ms)


def _finding(
    sign: StreamsSign,
    severity: str,
    kind: str,
    text: str,
    question: str,
    *options: str,
    size: int | None = None,
    since: int | None = None,
) -> Finding:
    return Finding(
        severity=severity,
        kind=kind,
        text=text,
        question=question,
        options=(f"--group={sign.group_id}", *options),
        group_id=sign.group_id,
        group_type=STREAMS,
        size=size,
        since_ms=sign.since_ms if since is None else since,
    )


def _lag(sign: StreamsSign) -> str:
    known_count = sign.lag.partitions - sign.lag.unknown
    return f"lag {number(sign.lag.records)}" + (f" in {counted(known_count, 'partition')}" if known_count > 1 else "")
