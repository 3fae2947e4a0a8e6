"""Cells that rebalances of groups of each type share: members, and from whom to whom something moved."""

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.output import UNKNOWN, Column, Row, heading, number_text, shortened, table_name
from sharelens.output.group_words import member_name
from sharelens.output.layouts import Layout
from sharelens.output.wording import counted


def member_text(member: Mapping[str, Any]) -> str:
    """The name of a member in a list of members."""
    return member_name(member["member_id"], member["client_id"], table_name)


def movement_text(move: Mapping[str, Any]) -> str:
    """` from a to b`: the members that had it before and have it afterwards, as far as there are some."""
    lost, gained = ([member_text(member) for member in move[field]] for field in ("from_members", "to_members"))
    return (f" from {' and '.join(lost)}" if lost else "") + (f" to {' and '.join(gained)}" if gained else "")


def members_column(field: str) -> Column:
    """A column of members."""
    return texts_column(field, lambda values: [member_text(member) for member in values])


def texts_column(field: str, texts: Callable[[list[Any]], list[str]]) -> Column:
    """A column of the texts about a list, shortened with a count where they don't fit."""

    def row_texts(row: Row) -> list[str]:
        values = row[field]
        assert isinstance(values, list)
        return texts(values)

    return Column(
        heading=heading(field),
        cell=lambda row: ", ".join(row_texts(row)) or UNKNOWN,
        fields=(field,),
        short=lambda row, width: shortened(row_texts(row), str, width),
    )


def kept_column(noun: str) -> Column:
    """`6/8`: the active tasks (or partitions) that stay, of those in the targets before and after."""
    kept_field, lost_field = f"kept_{noun}", f"lost_{noun}"

    def cell(row: Row) -> str:
        kept_count, lost = row[kept_field], row[lost_field]
        assert isinstance(kept_count, int)
        assert isinstance(lost, int)
        return f"{kept_count}/{kept_count + lost}" if kept_count + lost else UNKNOWN

    return Column(heading=heading(kept_field), cell=cell, right=True, fields=(kept_field, lost_field))


def size_column(noun: str) -> Column:
    """`2-3`: the tasks (or partitions) of the members with the fewest and the most."""
    fewest_field, most_field = f"fewest_{noun}", f"most_{noun}"

    def cell(row: Row) -> str:
        fewest, largest = row[fewest_field], row[most_field]
        return number_text(largest) if fewest == largest else f"{fewest}-{largest}"

    return Column(heading=f"{noun.upper()}-PER-MEMBER", cell=cell, right=True, fields=(fewest_field, most_field))


def list_total(rebalances: pa.Table, field: str) -> int:
    """How many elements the lists of a column have together; 0 without rows."""
    return pc.sum(pc.list_value_length(rebalances.column(field))).as_py() or 0


def members_total(rebalances: pa.Table) -> str:
    """How many rebalances there were, and how many members joined and were removed."""
    joined, removed = (list_total(rebalances, field) for field in ("joined", "removed"))
    members = f"{counted(joined, 'member')} joined, {removed} removed (left or fenced)"
    return f"{counted(rebalances.num_rows, 'rebalance')}: {members}"


FIRST_FIELDS = "at_ms group_id group_epoch assignment_epoch state member_count joined removed"
LAST_FIELDS = "log_partition log_offset completeness"
"""The fields at both ends of the rows, for groups of each type."""


def moves_total(rebalances: pa.Table, noun: str, owned: str) -> str:
    """How many rebalances, members and moved `noun`s, and the longest time of `owned` without an owner."""
    longest = pc.max(rebalances.column("longest_without_owner_ms")).as_py()
    owners = f"; {owned} had no owner for {longest} ms at most" if longest else ""
    return f"{members_total(rebalances)}, {counted(list_total(rebalances, 'moved'), noun)} moved{owners}"


def moves_layout(row: pa.Schema, noun: str, moves: Callable[[list[Any]], list[str]]) -> Layout:
    """The layout of rebalances that move `noun` (tasks, partitions); `moves`: the texts about moves."""
    sizes = noun.upper()
    return Layout(
        schema=row,
        fields=f"{FIRST_FIELDS} changed moved kept_{noun} fewest_{noun} stable_after_ms longest_without_owner_ms "
        f"{noun}_still_without_owner {LAST_FIELDS}",
        headings={"longest_without_owner_ms": "WITHOUT-OWNER-MS", f"{noun}_still_without_owner": "STILL-WITHOUT-OWNER"},
        cells=(
            *map(members_column, ("joined", "removed", "changed")),
            texts_column("moved", moves),
            kept_column(noun),
            size_column(noun),
        ),
        important=f"AT GROUP-EPOCH #MEMBERS JOINED REMOVED MOVED KEPT-{sizes} WITHOUT-OWNER-MS STABLE-AFTER-MS STATE "
        f"{sizes}-PER-MEMBER STILL-WITHOUT-OWNER COMPLETENESS CHANGED ASSIGNMENT-EPOCH LOG-OFFSET GROUP",
    )
