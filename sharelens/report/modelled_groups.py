"""Consumer and streams groups on a page: who had which partition or task when, rebalances, times of not being ready."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow.compute as pc

from sharelens.groups.schemas import CONSUMER, DEAD, GROUP_HISTORY, NOT_READY, STREAMS
from sharelens.output import Answer, Column
from sharelens.output.group_words import member_name, not_ready_reason, task_name
from sharelens.output.layouts import Layout
from sharelens.output.wording import counted, moment, name
from sharelens.questions.answers.share_partitions import Row
from sharelens.questions.groups import rebalances_consumer, rebalances_streams
from sharelens.report import charts, colours
from sharelens.report.answer_sheets import answer_sheets
from sharelens.report.model import Figure, Section, Sheet
from sharelens.report.model_digest import ModelDigest
from sharelens.report.orders import ROWS_SHOWN

GROUPS_DRAWN, TASKS_DRAWN, GROUPS_SHOWN = 4, 60, 200
LANE_HEIGHT, AXES_HEIGHT = 16, 48


class _Kind(NamedTuple):
    """A kind of groups in the words of the page: what a member has, a lane of the picture, and the rebalances."""

    group_type: str
    noun: str
    lane_noun: str
    figures: str
    lane: Callable[[str, int], str]
    lane_text: str
    notes: Sequence[str]
    layout: Layout


_STREAMS = _Kind(
    STREAMS,
    "active task",
    "an active task",
    "owners",
    task_name,
    "subtopology_partition",
    (),
    rebalances_streams.LAYOUT,
)
_CONSUMER = _Kind(
    CONSUMER,
    "partition",
    "a partition",
    "consumer-owners",
    lambda topic, partition: f"{name(topic)}-{partition}",
    "topic-partition",
    ("They don't count in the first line: sharelens overview --all-groups judges them.",),
    rebalances_consumer.LAYOUT,
)


def streams_sections(digest: ModelDigest, groups: Answer, command: Callable[[str], str]) -> Sequence[Section]:
    """The section of streams groups; none without such a group.

    `groups`: rows of the overview; `command`: the command line about a group's epochs.
    """
    return _sections(_STREAMS, digest, groups, command)


def consumer_sections(digest: ModelDigest, groups: Answer, command: Callable[[str], str]) -> Sequence[Section]:
    """The section of consumer groups, as `streams_sections`; `groups`: rows of `sharelens groups`."""
    return _sections(_CONSUMER, digest, groups, command)


def _sections(kind: _Kind, digest: ModelDigest, groups: Answer, command: Callable[[str], str]) -> Sequence[Section]:
    if digest.groups.num_rows == 0:
        return ()
    title = f"{kind.group_type.title()} groups"
    newest = {row["group_id"]: row for row in digest.groups.to_pylist()}
    moved = Counter(digest.rebalances.column("group_id").to_pylist())
    drawn = sorted(newest, key=lambda group: (newest[group]["state"] == DEAD, -moved[group], group))[:GROUPS_DRAWN]
    pictures = [_ownership(kind, f"{kind.figures}-{rank}", digest, group) for rank, group in enumerate(drawn, 1)]
    left_out = len(newest) - len(drawn)
    words = f" {counted(left_out, 'group')} more not drawn." if left_out else ""
    sheets = answer_sheets(groups, name=f"{kind.group_type}-groups", caption=title, row_limit=GROUPS_SHOWN)
    for place, group in enumerate(drawn, 1):
        sheets += _rebalance_sheets(kind, digest, group, place, command(group))
    if NOT_READY in digest.groups.column("state").to_pylist():
        sheets += _not_ready_sheets(digest)
    return (
        Section(
            name=kind.group_type,
            title=title,
            paragraphs=(
                f"The member that has each {kind.noun} in its assignment, also while it must give it up.{words}",
                *kind.notes,
            ),
            figures=[picture for picture in pictures if picture is not None],
            sheets=sheets,
        ),
    )


def _ownership(kind: _Kind, name_: str, digest: ModelDigest, group: str) -> Figure | None:
    """A row a partition or active task, coloured by the member that has it; None without one in the time of charts."""
    where = pc.field("group_id") == group
    rows = [row for row in digest.owned.filter(where).to_pylist() if _is_within(row, digest)]
    lanes = sorted({(row["part"], row["partition"]) for row in rows})
    if not lanes:
        return None
    shown = lanes[:TASKS_DRAWN]
    names = [kind.lane(part, partition) for part, partition in shown]
    clients = {row["member_id"]: row["client_id"] for row in rows}
    colour_of = {
        member: colours.LINES[place % len(colours.LINES)][0] for place, member in enumerate(dict.fromkeys(clients))
    }
    bars = [_bar(kind, row, digest) for row in rows if (row["part"], row["partition"]) in set(shown)]
    chart = charts.ownership(names, colour_of, digest.from_ms, digest.to_ms)
    drawn = charts.drawn(name_, AXES_HEIGHT + LANE_HEIGHT * len(shown), chart, {"owners": bars})
    labels = [
        (f"line-{place}", member_name(member, clients[member]))
        for place, member in enumerate(list(colour_of)[: len(colours.LINES)])
    ]
    left_out = len(lanes) - len(shown)
    remainder_text = f" {counted(left_out, kind.noun.split()[-1])} more not drawn." if left_out else ""
    again = " Further members have the same colours again." if len(colour_of) > len(colours.LINES) else ""
    return Figure(
        name=name_,
        caption=f"{name(group)}: owners of the {kind.noun}s",
        drawing=drawn,
        text=f"A row is {kind.lane_noun} ({kind.lane_text}), a colour a member, a blank a time without an owner, "
        f"from {moment(digest.from_ms)} to {moment(digest.to_ms)} UTC.{remainder_text}{again}",
        key=tuple(labels),
    )


def _is_within(row: Row, digest: ModelDigest) -> bool:
    begins, ends = row["valid_from_ms"], row["valid_to_ms"]
    assert isinstance(begins, int)
    return begins < digest.to_ms and (ends is None or (isinstance(ends, int) and ends > max(begins, digest.from_ms)))


def _bar(kind: _Kind, row: Row, digest: ModelDigest) -> dict[str, object]:
    ends = row["valid_to_ms"]
    from_ms, to_ms = (
        max(row["valid_from_ms"], digest.from_ms),
        digest.to_ms if ends is None else min(ends, digest.to_ms),
    )
    lane = kind.lane(row["part"], row["partition"])
    owner = member_name(row["member_id"], row["client_id"])
    return {
        "x": from_ms,
        "x2": to_ms,
        "lane": lane,
        "member": row["member_id"],
        "text": f"{kind.noun.split()[-1]} {lane}: {owner}, {moment(from_ms)[11:]} to {moment(to_ms)[11:]}",
    }


def _rebalance_sheets(kind: _Kind, digest: ModelDigest, group: str, place: int, command: str) -> list[Sheet]:
    """The rebalances of a group within the time that charts show, the newest first."""
    within = (pc.field("at_ms") >= digest.from_ms) & (pc.field("at_ms") <= digest.to_ms)
    rows = digest.rebalances.filter(within & (pc.field("group_id") == group))
    newest = rows.sort_by([("at_ms", "descending"), ("log_offset", "descending")])
    answer = Answer(table=newest, columns=kind.layout.columns(newest.column_names), none="no rebalance")
    caption = f"{name(group)}: rebalances, the newest first"
    return answer_sheets(
        answer, name=f"{kind.group_type}-rebalances-{place}", caption=caption, row_limit=ROWS_SHOWN, command=command
    )


def _not_ready_sheets(digest: ModelDigest) -> list[Sheet]:
    rows = digest.groups.filter(pc.field("state") == NOT_READY).sort_by([("valid_from_ms", "descending")])
    rows = rows.filter(pc.fill_null(pc.greater(rows.column("valid_to_ms"), rows.column("valid_from_ms")), True))
    caption = "Times in which a streams group was not ready, the newest first"
    answer = Answer(table=rows, columns=NOT_READY_LAYOUT.columns())
    return answer_sheets(answer, name="streams-not-ready", caption=caption, row_limit=ROWS_SHOWN)


def _reason_cell(row: Mapping[str, Any]) -> str:
    return not_ready_reason(row["topology_epoch"], row["validated_topology_epoch"])


NOT_READY_LAYOUT = Layout(
    schema=GROUP_HISTORY,
    fields="group_id valid_from_ms valid_to_ms group_epoch topology_epoch completeness",
    headings={"valid_from_ms": "FROM", "valid_to_ms": "TO"},
    cells=(Column(heading="REASON", cell=_reason_cell, fields=("topology_epoch", "validated_topology_epoch")),),
)
