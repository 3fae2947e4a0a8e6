"""Consumer, share and streams groups: state, epochs, members, last change, by the group coordinator's log."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.conditions import filter_rows
from sharelens.groups import summary as measure
from sharelens.groups.schemas import GROUPS, SHARE
from sharelens.output import Answer, Column, Row, number_text, shortened, table_name
from sharelens.output.layouts import Layout
from sharelens.output.wording import listed
from sharelens.parameters.times import time_text
from sharelens.questions.answers.measured import answer
from sharelens.questions.answers.shape import answer_schema
from sharelens.tables.known_groups import HOW, groups_with_share_state, records_of_groups, undecoded_groups
from sharelens.tables.port import Tables
from sharelens.tables.where import Span

EVER = Span()


def group_ids(group: Iterable[str]) -> frozenset[str]:
    """The groups that --group names."""
    return frozenset(group)


def groups(evidence: Tables, names: frozenset[str], as_of_ms: int | None = None, span: Span = EVER) -> Answer:
    """The answer to `sharelens groups`; no names: all groups. `as_of_ms`: only records with a timestamp up to it.

    `span` bounds the time of a group's last change.

    Raises:
        UsageError: no record of __consumer_offsets names the group.
    """
    records = records_of_groups(evidence, names)
    table = measure.groups(records, as_of_ms)
    missing = () if table.num_rows else (_missing(evidence, records),)
    within = Span(from_ms=span.from_ms, to_ms=span.to_ms).expression()
    table = filter_rows(table.rename_columns({"last_change_ms": "log_time_ms"}), within)
    table = table.rename_columns({"log_time_ms": "last_change_ms"})
    states = {row["values"]: row["counts"] for row in pc.value_counts(table.column("state")).to_pylist()}
    counts = ", ".join(f"{state} {states[state]}" for state in sorted(states)) or "none"
    return answer(
        evidence,
        table,
        LAYOUT,
        totals=f"{_kinds(table)}: {counts}",
        warnings=(*missing, *undecoded_groups(evidence)),
        none="no consumer, share or streams group",
    )


def _kinds(table: pa.Table) -> str:
    """The types of the groups; share groups, if there are none."""
    kinds = sorted(set(table.column("group_type").to_pylist())) or [SHARE]
    return f"{' and '.join(filter(None, [', '.join(kinds[:-1]), kinds[-1]]))} groups"


def _missing(evidence: Tables, records: pa.Table) -> str:
    """The reason for an empty answer: no record at all, or none up to the moment."""
    first_ms = pc.min(records.column("timestamp_ms")).as_py()
    if first_ms is not None:
        return f"the first record of these groups has the timestamp {time_text(first_ms)}: ask as of then, or later"
    with_state = listed(groups_with_share_state(evidence))
    none = "no record of a consumer, share or streams group in __consumer_offsets"
    return f"{none}; {HOW}; groups with share state: {with_state}"


def _members_cell(row: Row) -> str:
    members = row["members"]
    if not isinstance(members, list) or not members:
        return number_text(None)
    return ", ".join(map(_member_text, members))


def _short_members(row: Row, width: int) -> str:
    members = row["members"]
    return shortened(members, _member_text, width) if isinstance(members, list) else number_text(None)


def _member_text(member: Mapping[str, Any]) -> str:
    return f"{table_name(member['client_id'])}@{table_name(member['client_host'])}"


LAYOUT = Layout(
    schema=answer_schema(GROUPS),
    fields="group_id group_type state group_epoch assignment_epoch member_count initialized_partitions "
    "deleting_topics last_change_ms completeness members",
    cells=(Column(heading="MEMBERS", cell=_members_cell, fields=("members",), short=_short_members),),
    important="GROUP STATE TYPE #MEMBERS LAST-CHANGE MEMBERS COMPLETENESS INITIALIZED-PARTITIONS DELETING-TOPICS",
)
