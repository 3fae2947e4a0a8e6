"""End offsets of topic partitions from a file, which names topics and no ids."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import pyarrow as pa

from sharelens.measures.topics.extents import TOPIC_END, TopicPartition

EndOffsets = Mapping[tuple[str, int], int]
"""End offsets by (topic name, partition)."""
FROM_FILE = "end_offsets_file"
PLACE = ("topic_id", "partition")


def ends_by_id(
    end_offsets: EndOffsets, names: Mapping[str, str], partitions: Collection[TopicPartition]
) -> dict[TopicPartition, int]:
    """The end offsets by topic id; `names`: topic names by id, `partitions`: those of the evidence.

    Where several topic ids have one name, the name means the id with a partition in the evidence; none if several have.
    """
    ids: dict[str, list[str]] = {}
    for topic_id, name in names.items():
        ids.setdefault(name, []).append(topic_id)
    result = {}
    for (name, partition), offset in end_offsets.items():
        only = _only_id(ids.get(name, []), partition, partitions)
        if only is not None:
            result[only, partition] = offset
    return result


def with_stable_offsets(ends: pa.Table, stable: EndOffsets, names: Mapping[str, str]) -> pa.Table:
    """TOPIC_END rows with last stable offsets by (topic name, partition) where they are unknown, up to the end."""
    rows = {(row["topic_id"], row["partition"]): row for row in ends.to_pylist()}
    for place, offset in ends_by_id(stable, names, rows).items():
        row = rows.get(place)
        if row is not None and row["last_stable_offset"] is None and row["end_offset"] is not None:
            row["last_stable_offset"] = min(offset, row["end_offset"])
    return pa.Table.from_pylist([rows[place] for place in sorted(rows)], schema=TOPIC_END)


def with_inferred_ends(ends: pa.Table, then: EndOffsets, names: Mapping[str, str]) -> pa.Table:
    """TOPIC_END rows with the ends at an earlier moment by (topic name, partition) where none is known."""
    rows = {(row["topic_id"], row["partition"]): row for row in ends.to_pylist()}
    for place, offset in ends_by_id(then, names, rows).items():
        row = rows.setdefault(place, dict.fromkeys(TOPIC_END.names) | dict(zip(PLACE, place, strict=True)))
        if row["end_offset"] is None and row["end_offset_inferred"] is None:
            row["end_offset_inferred"] = offset
    return pa.Table.from_pylist([rows[place] for place in sorted(rows)], schema=TOPIC_END)


def _only_id(ids: Sequence[str], partition: int, partitions: Collection[TopicPartition]) -> str | None:
    there = [topic_id for topic_id in ids if (topic_id, partition) in partitions]
    choice = ids if len(ids) == 1 else there
    return choice[0] if len(choice) == 1 else None


def with_end_offsets(
    ends: pa.Table,
    end_offsets: EndOffsets,
    names: Mapping[str, str],
    *,
    partitions: Iterable[TopicPartition] = (),
    only_higher: bool = False,
) -> pa.Table:
    """TOPIC_END rows in which ends from a file replace those of the evidence; `only_higher`: lower ones alone.

    `partitions`: those that a name may mean, beside those of `ends` (`ends_by_id`).
    """
    if not end_offsets:
        return ends
    rows = {(row["topic_id"], row["partition"]): row for row in ends.to_pylist()}
    for place, offset in ends_by_id(end_offsets, names, {*rows, *partitions}).items():
        before = rows.get(place, dict.fromkeys(TOPIC_END.names))
        known_end = before["end_offset"]
        if only_higher and known_end is not None and known_end >= offset:
            continue
        rows[place] = before | {
            "topic_id": place[0],
            "partition": place[1],
            "end_offset": offset,
            "end_offset_source": FROM_FILE,
            "last_stable_offset": before["last_stable_offset"] if known_end == offset else None,
            "end_offset_inferred": None,
        }
    return pa.Table.from_pylist([rows[place] for place in sorted(rows)], schema=TOPIC_END)
