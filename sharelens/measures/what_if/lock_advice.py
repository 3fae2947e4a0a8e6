"""Lock durations that a history suggests: shorter where nothing needed the time, longer where it was too short.

15 s in force   every settled attempt lasted 9 s at most, others may have timed out          a shorter one
                attempts that ended 15 s after the outcome before, acknowledged later       a longer one
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sharelens.measures.histories.delivery_outcomes import outcomes_of
from sharelens.measures.inputs import Inputs
from sharelens.measures.ranges.steps import Cells
from sharelens.measures.settings.over_time import LOCK_DURATION, GroupSettings
from sharelens.measures.what_if.advice_rows import ADVICE, WORTH, Row, advice
from sharelens.measures.what_if.attempts import LONG_MS, attempts_of, with_ages
from sharelens.measures.what_if.lock_duration import WRITE_MS
from sharelens.measures.what_if.schema import EXACT, INFERRED
from state_model.share_records import DeliveryState

DURATIONS_MS = (15_000, 20_000, 30_000, 45_000, 60_000)
"""Lock durations that are suggested: those that brokers take with their default bounds."""
ATTEMPT_TIMES = pa.schema(
    [
        ("group_id", pa.string()),
        ("is_settled", pa.bool_()),
        ("most_ms", pa.int64()),
        ("is_repeated", pa.bool_()),
        ("is_create_time", pa.bool_()),
        ("offsets", pa.int64()),
        ("then_acknowledged", pa.int64()),
    ]
)
"""Record offsets of a group by the time in which an attempt lies, rounded up to seconds.

`is_settled`: acknowledged or archived; else available again. `is_repeated`: an outcome came before.
`is_create_time`: the clock of a producer bounds the time. `then_acknowledged`: those acknowledged in the end.
"""
SECOND_MS = 1_000


def attempt_times(inputs: Inputs) -> pa.Table:
    """ATTEMPT_TIMES rows of the attempts of some share partitions."""
    histories = inputs.histories()
    outcomes = outcomes_of(histories, histories.life, histories.life >= 0)
    attempts = with_ages(attempts_of(histories, outcomes), histories, inputs.headers)
    is_done = outcomes.state == DeliveryState.ACKNOWLEDGED
    cells = Cells(
        np.concatenate([attempts.life, outcomes.life[is_done]]),
        np.concatenate([attempts.first, outcomes.first[is_done]]),
        np.concatenate([attempts.last, outcomes.last[is_done]]),
    )
    count = len(attempts.life)
    width = np.append(np.diff(cells.begin), 0)[: cells.count]
    done = cells.covered(np.arange(len(cells.low)) >= count)
    before = np.append(0, np.cumsum(np.where(done, width, 0)))
    settled = attempts.state != DeliveryState.AVAILABLE
    most_ms = np.minimum(attempts.most_ms, attempts.age_ms)
    columns = {
        "group_id": histories.places.column("group_id").take(pa.array(histories.lives.place[attempts.life])),
        "is_settled": pa.array(settled),
        "most_ms": pa.array(-(-most_ms // SECOND_MS) * SECOND_MS),
        "is_repeated": pa.array(~attempts.is_first),
        "is_create_time": pa.array(attempts.is_create_time),
        "offsets": pa.array(attempts.last - attempts.first + 1),
        "then_acknowledged": pa.array(before[cells.high[:count]] - before[cells.low[:count]]),
    }
    return added_up([pa.table({name: columns[name] for name in ATTEMPT_TIMES.names}).cast(ATTEMPT_TIMES)])


def added_up(tables: Sequence[pa.Table]) -> pa.Table:
    """ATTEMPT_TIMES rows of several parts, each combination once."""
    rows = pa.concat_tables([ATTEMPT_TIMES.empty_table(), *tables])
    sums = rows.group_by(ATTEMPT_TIMES.names[:5], use_threads=False)
    return sums.aggregate([(name, "sum") for name in ATTEMPT_TIMES.names[5:]]).rename_columns(ATTEMPT_TIMES.names)


def about_locks(times: pa.Table, settings: GroupSettings) -> pa.Table:
    """ADVICE rows about lock durations, by group, from ATTEMPT_TIMES rows; of unknown durations there is none."""
    groups: dict[str, list[dict[str, int]]] = {}
    for time in times.to_pylist():
        groups.setdefault(time["group_id"], []).append(time)
    rows = []
    for group in sorted(groups):
        periods = {period.of(group, LOCK_DURATION, period.from_ms).number for period in settings.periods()}
        in_force = periods.pop() if len(periods) == 1 else None
        if in_force is not None:
            row: Row = {"group_id": group, "setting": LOCK_DURATION, "in_force": str(in_force)}
            rows += _shorter(row, groups[group], in_force) or _longer(row, groups[group], in_force)
    return pa.Table.from_pylist(rows, schema=ADVICE)


def _shorter(row: Row, times: Sequence[dict[str, int]], in_force: int) -> list[Row]:
    expired = sum(
        time["offsets"] for time in times if not time["is_settled"] and time["most_ms"] + WRITE_MS >= in_force
    )
    longest = max((time["most_ms"] for time in times if time["is_settled"]), default=LONG_MS)
    fitting = [duration for duration in DURATIONS_MS if longest + WRITE_MS < duration < in_force]
    if not expired or not fitting:
        return []
    certainty = INFERRED if any(time["is_create_time"] for time in times if time["is_settled"]) else EXACT
    evidence = (
        f"{expired} record offsets may have waited for a lock of {in_force} ms to expire; "
        f"each one that was acknowledged or archived had an outcome within {longest} ms"
    )
    effect = f"the same outcomes, what times out {in_force - fitting[0]} ms sooner"
    return [advice(row, fitting[0], evidence, effect, certainty)]


def _longer(row: Row, times: Sequence[dict[str, int]], in_force: int) -> list[Row]:
    again = [time for time in times if not time["is_settled"] and time["is_repeated"]]
    at_once = [time for time in again if in_force <= time["most_ms"] <= in_force + 2 * SECOND_MS]
    offsets, acknowledged = (sum(time[name] for time in at_once) for name in ("offsets", "then_acknowledged"))
    longer = [duration for duration in DURATIONS_MS if duration > in_force]
    if not acknowledged or not longer or offsets < WORTH * sum(time["offsets"] for time in again):
        return []
    evidence = (
        f"{offsets} record offsets were available again as long after their outcome before as a lock of {in_force} ms "
        f"lasts; {acknowledged} of them were acknowledged in the end"
    )
    return [advice(row, longer[0], evidence, f"0 to {offsets} deliveries fewer", INFERRED)]
