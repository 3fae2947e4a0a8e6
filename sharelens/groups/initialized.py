"""The share partitions that share groups list as initialized at the end of the group coordinator's log.

The coordinator marks a partition as initialized once its state is written (GroupMetadataManager), so each of them has
state in a whole copy of the state log.
"""

import json

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.groups.replay import GROUP, STATE_PARTITIONS, decoded, initialization_of, is_of_types
from sharelens.groups.schemas import INITIALIZED

SHARE_PARTITION = pa.schema([("group_id", pa.string()), ("topic_id", pa.string()), ("partition", pa.int32())])
LISTING_TYPES = (GROUP, STATE_PARTITIONS)
"""The types of the records that say which share partitions a group has, and whether the group is deleted."""
NEWEST = pc.ScalarAggregateOptions(skip_nulls=False)


def initialized_share_partitions(records: pa.Table) -> pa.Table:
    """SHARE_PARTITION rows that groups list as initialized by their newest record, in any order.

    `records`: GROUP_RECORD rows in (partition, log offset) order, of LISTING_TYPES at least. A group's tombstone ends
    its list; a record of an unknown value version changes nothing.
    """
    rows = decoded(records.filter(is_of_types(records, LISTING_TYPES)))
    lists = rows.filter(pc.field("record_type") == STATE_PARTITIONS).group_by("group_id", use_threads=False)
    newest = lists.aggregate([(name, "last", NEWEST) for name in ("value_json", "partition", "log_offset")])
    deletions = _newest_deletions(rows)
    keys: list[tuple[str, str, int]] = []
    for group, value, *place in zip(*(newest.column(name).to_pylist() for name in _LISTED), strict=True):
        if value is not None and deletions.get(group, (-1, -1)) < tuple(place):
            listed = initialization_of(json.loads(value))
            keys += [(group, key.topic_id, key.partition) for key in listed if key.status == INITIALIZED]
    columns = zip(*keys, strict=True) if keys else ([], [], [])
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, SHARE_PARTITION, strict=True)],
        schema=SHARE_PARTITION,
    )


_LISTED = ("group_id", "value_json_last", "partition_last", "log_offset_last")


def _newest_deletions(rows: pa.Table) -> dict[str, tuple[int, int]]:
    """By group the (partition, log offset) of its newest tombstone."""
    tombstones = rows.filter((pc.field("record_type") == GROUP) & pc.field("is_tombstone"))
    newest = tombstones.group_by("group_id", use_threads=False).aggregate(
        [("partition", "last"), ("log_offset", "last")]
    )
    names = ("group_id", "partition_last", "log_offset_last")
    columns = (newest.column(name).to_pylist() for name in names)
    return {group: (partition, offset) for group, partition, offset in zip(*columns, strict=True)}
