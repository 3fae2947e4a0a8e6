"""Records of groups by name, or the reason why there are none."""

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.groups.replay import GROUP, is_of_share_group, is_of_types, up_to
from sharelens.output import name_cell
from sharelens.output.wording import counted, listed
from sharelens.parameters.filters import KeyFilter
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_group_records, read_share_partitions, unknown_name
from state_model.consumer.records import CONSUMER_TYPES
from state_model.errors import SharelensError, UsageError
from state_model.group_schemas import RECORD_TYPES, GroupKind
from state_model.streams.records import METADATA, STREAMS_TYPES

HOW = "only that topic has state, members and epochs: copy the brokers' __consumer_offsets-N folders too"


def records_of_groups(evidence: Tables, names: frozenset[str]) -> pa.Table:
    """GROUP_RECORD rows of these groups; no names: of all.

    Raises:
        UsageError: no share state or record of __consumer_offsets names the group, and the evidence is no cluster.
        SharelensError: only share state names it, or a cluster does not have it.
    """
    records = read_group_records(evidence, names or None)
    unknown = sorted(names - set(records.column("group_id").to_pylist()))
    if not unknown:
        return records
    with_state = groups_with_share_state(evidence)
    if unknown[0] in with_state:
        raise SharelensError(
            f"share group {name_cell(unknown[0])} has share state in {evidence.place}, but no record in "
            f"__consumer_offsets: {HOW}"
        )
    if evidence.undecoded_group_records:
        raise SharelensError(f"{name_cell(unknown[0])} can be a consumer group: {undecoded_groups(evidence)[0]}")
    there = sorted({*read_group_records(evidence).column("group_id").to_pylist(), *with_state})
    name = name_cell(unknown[0])
    raise unknown_name(
        evidence, f"no consumer, share or streams group {name} in {evidence.place}; groups there: {listed(there)}"
    )


def undecoded_groups(evidence: Tables) -> tuple[str, ...]:
    """The warning that a lake has records of consumer groups that no run decoded; none where it has none."""
    if not evidence.undecoded_group_records:
        return ()
    count = counted(evidence.undecoded_group_records, "record")
    how = "an older version decoded it; decode it again with `sharelens run --lake DIR --rebuild decode`"
    return (f"consumer groups are unknown: {evidence.place} has {count} of them that are not decoded: {how}",)


def share_group_records(evidence: Tables, name: str) -> pa.Table:
    """GROUP_RECORD rows of one share group, at least one of them of a share group's types.

    Raises:
        UsageError: nothing names the group, or it is of another kind.
        SharelensError: only share state names it.
    """
    records = records_of_groups(evidence, frozenset([name]))
    if not pc.any(is_of_share_group(records)).as_py():
        kind = records.column("record_name")[0].as_py()
        raise UsageError(f"{name_cell(name)} is no share group: __consumer_offsets has {kind} records of it")
    return records


def group_kind(records: pa.Table, as_of_ms: int | None = None) -> GroupKind:
    """The kind of group of a group's newest record, up to a moment if any is; of a share group without a record."""
    earlier = up_to(records, as_of_ms)
    rows = earlier if earlier.num_rows else records.slice(0, 1)
    if rows.num_rows == 0:
        return GroupKind.SHARE
    return RECORD_TYPES[rows.column("record_type")[rows.num_rows - 1].as_py()].group_kind


def modelled_groups(
    evidence: Tables, names: frozenset[str], types: Collection[int] = (*CONSUMER_TYPES, *STREAMS_TYPES)
) -> frozenset[str]:
    """Those of these groups that are or were consumer or streams groups, or have records of `types`; no names: none."""
    return groups_of_types(read_group_records(evidence, names), types) if names else frozenset()


def groups_of_types(records: pa.Table, types: Collection[int]) -> frozenset[str]:
    """The groups in GROUP_RECORD rows with records of these types."""
    return frozenset(records.filter(is_of_types(records, types)).column("group_id").to_pylist())


def live_groups(records: pa.Table) -> set[str]:
    """The share and streams groups in GROUP_RECORD rows, in log order, that were not deleted."""
    epochs = records.filter(is_of_types(records, (GROUP, METADATA))).select(["group_id", "is_tombstone"])
    newest = epochs.group_by("group_id", use_threads=False).aggregate([("is_tombstone", "last")])
    return set(newest.filter(pc.invert(newest.column("is_tombstone_last"))).column("group_id").to_pylist())


def of_filter(records: pa.Table, key_filter: KeyFilter) -> pa.Table:
    """The GROUP_RECORD rows of the groups that a filter names; it names none where it only names topics."""
    if key_filter.keeps_all:
        return records
    return records.filter(pc.field("group_id").isin(pa.array(sorted(key_filter.groups), pa.string())))


def groups_with_share_state(evidence: Tables) -> list[str]:
    """The groups that share state names, sorted."""
    return sorted(set(read_share_partitions(evidence).column("group_id").to_pylist()))
