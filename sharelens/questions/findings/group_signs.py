"""What the group coordinator's log says of share groups: members, assignments, initializations, epochs."""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.findings.signs import ShareCoordination
from sharelens.findings.thresholds import LOOP_MS, RECENT_MS, REPEATS
from sharelens.groups.moment import ShareMoment
from sharelens.groups.replay import GROUP, STATE_PARTITIONS, decoded, initialization_of, up_to
from sharelens.groups.schemas import INITIALIZED, INITIALIZING


def share_coordination(
    records: pa.Table, moments: Mapping[str, ShareMoment], now_ms: int, as_of_ms: int | None
) -> Sequence[ShareCoordination]:
    """The groups that are not deleted, by id. `records`: GROUP_RECORD rows of share groups."""
    records = up_to(records, as_of_ms)
    initialized_ms = _newest_ms(records.filter(pc.field("record_type") == STATE_PARTITIONS))
    loop_epochs_ms = epochs_ms(records, GROUP, now_ms)
    repeated = _repeated(records.filter(pc.field("timestamp_ms") >= now_ms - RECENT_MS))
    return tuple(
        _coordination(name, moment, initialized_ms.get(name), repeated.get(name, ()), loop_epochs_ms.get(name, ()))
        for name, moment in moments.items()
        if not moment.group.is_deleted
    )


def _newest_ms(records: pa.Table) -> dict[str, int]:
    newest = records.group_by("group_id").aggregate([("timestamp_ms", "max")])
    return dict(zip(newest.column("group_id").to_pylist(), newest.column("timestamp_ms_max").to_pylist(), strict=True))


def _repeated(records: pa.Table) -> dict[str, list[tuple[str, int]]]:
    """By group the user partitions that came into initialization REPEATS times or more."""
    rows = decoded(records.filter((pc.field("record_type") == STATE_PARTITIONS) & ~pc.field("is_tombstone")))
    counts: dict[str, Counter[tuple[str, int]]] = defaultdict(Counter)
    current: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for row in rows.select(["group_id", "value_json"]).to_pylist():
        keys = initialization_of(json.loads(row["value_json"]))
        initializing = {(key.topic_id, key.partition) for key in keys if key.status == INITIALIZING}
        counts[row["group_id"]].update(initializing - current[row["group_id"]])
        current[row["group_id"]] = initializing
    return {
        group: [place for place, count in sorted(counter.items()) if count >= REPEATS]
        for group, counter in counts.items()
    }


def epochs_ms(records: pa.Table, record_type: int, now_ms: int) -> dict[str, list[int]]:
    """By group the log times of its group epochs (records of a type) within the window of `epoch_loop`."""
    raised = records.filter((pc.field("record_type") == record_type) & (pc.field("timestamp_ms") >= now_ms - LOOP_MS))
    times: dict[str, list[int]] = defaultdict(list)
    for row in raised.select(["group_id", "timestamp_ms"]).to_pylist():
        times[row["group_id"]].append(row["timestamp_ms"])
    return times


def _coordination(
    name: str,
    moment: ShareMoment,
    initialized_ms: int | None,
    repeated: Sequence[tuple[str, int]],
    epochs_ms: Sequence[int],
) -> ShareCoordination:
    keys = moment.group.initialization or {}
    return ShareCoordination(
        group_id=name,
        members=len(moment.group.members),
        changed_ms=moment.newest.timestamp_ms,
        initializing=[(key.topic_id, key.partition, key.status) for key in sorted(keys) if key.status != INITIALIZED],
        initialized_ms=initialized_ms,
        repeated=repeated,
        initialized=frozenset((key.topic_id, key.partition) for key in keys if key.status == INITIALIZED),
        assigned=frozenset(
            (topic_id, partition)
            for member in moment.group.members.values()
            for topic_id, partitions in member.assigned
            for partition in partitions
        ),
        epochs_ms=epochs_ms,
    )
