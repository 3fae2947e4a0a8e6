"""Streams groups on a page: who had which task when, rebalances, and the times in which a group was not ready."""

from collections.abc import Callable, Sequence

import pyarrow.compute as pc

from sharelens.groups.schemas import ACTIVE, DEAD, NOT_READY, STREAMS
from sharelens.output.group_words import member_name, not_ready_reason, task_name
from sharelens.output.wording import UNKNOWN, counted, moment, name, number
from sharelens.parameters.times import lasted
from sharelens.questions.answers.share_partitions import Row
from sharelens.report import charts, colours
from sharelens.report.model import Figure, Head, Section, Sheet
from sharelens.report.orders import ROWS_SHOWN
from sharelens.report.sheets import complete_cell, number_cell, text_cell, time_cell
from sharelens.report.streams_digest import StreamsDigest

GROUPS_DRAWN, TASKS_DRAWN, GROUPS_SHOWN = 4, 60, 200
LANE_HEIGHT, AXES_HEIGHT = 16, 48
WHO_HAS_WHAT = "The member that has each active task in its assignment, also while it must give it up."


def streams_sections(digest: StreamsDigest, command: Callable[[str], str]) -> Sequence[Section]:
    """The section of streams groups; none without such a group. `command`: the command line about a group's epochs."""
    if digest.groups.num_rows == 0:
        return ()
    newest = {row["group_id"]: row for row in digest.groups.to_pylist()}
    moved = {row["group_id"]: 0 for row in newest.values()}
    for row in digest.rebalances.to_pylist():
        moved[row["group_id"]] += 1
    drawn = sorted(newest, key=lambda group: (newest[group]["state"] == DEAD, -moved[group], group))[:GROUPS_DRAWN]
    pictures = [_ownership(f"owners-{rank}", digest, group) for rank, group in enumerate(drawn, 1)]
    left_out = len(newest) - len(drawn)
    words = f" {counted(left_out, 'group')} more not drawn." if left_out else ""
    return (
        Section(
            name=STREAMS,
            title="Streams groups",
            paragraphs=(f"{WHO_HAS_WHAT}{words}",),
            figures=[picture for picture in pictures if picture is not None],
            sheets=(
                _groups_sheet(newest),
                _rebalances_sheet(digest, command(drawn[0])),
                *((_not_ready_sheet(digest),) if NOT_READY in digest.groups.column("state").to_pylist() else ()),
            ),
        ),
    )


def _ownership(name_: str, digest: StreamsDigest, group: str) -> Figure | None:
    """A row an active task, coloured by the member that has it; None without one in the time that charts show."""
    where = (pc.field("group_id") == group) & (pc.field("task_type") == ACTIVE)
    rows = [row for row in digest.tasks.filter(where).to_pylist() if _is_within(row, digest)]
    lanes = sorted({(row["subtopology_id"], row["partition"]) for row in rows})
    if not lanes:
        return None
    shown = lanes[:TASKS_DRAWN]
    names = [task_name(subtopology, partition) for subtopology, partition in shown]
    clients = {row["member_id"]: row["client_id"] for row in rows}
    colour_of = {
        member: colours.LINES[place % len(colours.LINES)][0] for place, member in enumerate(dict.fromkeys(clients))
    }
    bars = [_bar(row, digest) for row in rows if (row["subtopology_id"], row["partition"]) in set(shown)]
    chart = charts.ownership(names, colour_of, digest.from_ms, digest.to_ms)
    drawn = charts.drawn(name_, AXES_HEIGHT + LANE_HEIGHT * len(shown), chart, {"owners": bars})
    labels = [
        (f"line-{place}", member_name(member, clients[member]))
        for place, member in enumerate(list(colour_of)[: len(colours.LINES)])
    ]
    remainder_text = f" {counted(len(lanes) - len(shown), 'task')} more not drawn." if len(lanes) > len(shown) else ""
    again = " Further members have the same colours again." if len(colour_of) > len(colours.LINES) else ""
    return Figure(
        name=name_,
        caption=f"{name(group)}: owners of the active tasks",
        wide=drawn.wide,
        narrow=drawn.narrow,
        text=f"A row is an active task (subtopology_partition), a colour a member, a blank a time without an owner, "
        f"from {moment(digest.from_ms)} to {moment(digest.to_ms)} UTC.{remainder_text}{again}",
        key=tuple(labels),
    )


def _is_within(row: Row, digest: StreamsDigest) -> bool:
    begins, ends = row["valid_from_ms"], row["valid_to_ms"]
    assert isinstance(begins, int)
    return begins < digest.to_ms and (ends is None or (isinstance(ends, int) and ends > max(begins, digest.from_ms)))


def _bar(row: Row, digest: StreamsDigest) -> dict[str, object]:
    ends = row["valid_to_ms"]
    from_ms, to_ms = (
        max(row["valid_from_ms"], digest.from_ms),
        digest.to_ms if ends is None else min(ends, digest.to_ms),
    )
    task = task_name(row["subtopology_id"], row["partition"])
    owner = member_name(row["member_id"], row["client_id"])
    return {
        "x": from_ms,
        "x2": to_ms,
        "lane": task,
        "member": row["member_id"],
        "text": f"task {task}: {owner}, {moment(from_ms)[11:]} to {moment(to_ms)[11:]}",
    }


def _groups_sheet(newest: dict[str, Row]) -> Sheet:
    rows = sorted(newest.values(), key=lambda row: (row["state"] == DEAD, row["group_id"]))
    return Sheet(
        name="streams-groups",
        caption="Streams groups",
        heads=(
            Head(label="Group"),
            Head(label="State", hint="by the group coordinator's log"),
            Head(label="Members", number=True),
            Head(label="Group epoch", number=True),
            Head(label="Assignment epoch", number=True),
            Head(label="Standby replicas", number=True),
            Head(label="Since", hint="log time of the last change, UTC"),
            Head(label="Completeness"),
        ),
        rows=[
            (
                text_cell(name(row["group_id"])),
                text_cell(row["state"]),
                number_cell(row["member_count"]),
                number_cell(row["group_epoch"]),
                number_cell(row["assignment_epoch"]),
                number_cell(row["num_standby_replicas"]),
                time_cell(row["valid_from_ms"]),
                complete_cell(row),
            )
            for row in rows[:GROUPS_SHOWN]
        ],
        left_off=max(0, len(rows) - GROUPS_SHOWN),
        tools=True,
    )


def _rebalances_sheet(digest: StreamsDigest, command: str) -> Sheet:
    within = (pc.field("at_ms") >= digest.from_ms) & (pc.field("at_ms") <= digest.to_ms)
    rows = digest.rebalances.filter(within).sort_by([("at_ms", "descending"), ("log_offset", "descending")])
    return Sheet(
        name="streams-rebalances",
        caption="Rebalances of streams groups, the newest first",
        heads=(
            Head(label="At", hint="log time, UTC"),
            Head(label="Group"),
            Head(label="Group epoch", number=True),
            Head(label="Members", number=True),
            Head(label="Joined", number=True),
            Head(label="Removed", number=True, hint="left or fenced: the records are the same"),
            Head(label="Tasks moved", number=True),
            Head(label="Kept", hint="active tasks that stay, of those in the targets before and after"),
            Head(label="Tasks per member", hint="fewest and most, standby tasks included"),
            Head(label="Stable after", hint="- where the next rebalance came first"),
            Head(label="Without owner", hint="the longest time of an active task"),
            Head(label="Completeness"),
        ),
        rows=[
            (
                time_cell(row["at_ms"]),
                text_cell(name(row["group_id"])),
                number_cell(row["group_epoch"]),
                number_cell(row["member_count"]),
                number_cell(len(row["joined"])),
                number_cell(len(row["removed"])),
                number_cell(len(row["moved"])),
                text_cell(_kept_tasks_text(row)),
                text_cell(UNKNOWN if row["most_tasks"] is None else f"{row['fewest_tasks']}–{row['most_tasks']}"),
                text_cell(_duration(row["stable_after_ms"])),
                text_cell(_duration(row["longest_without_owner_ms"])),
                complete_cell(row),
            )
            for row in rows.slice(0, ROWS_SHOWN).to_pylist()
        ],
        left_off=max(0, rows.num_rows - ROWS_SHOWN),
        command=command,
        tools=True,
    )


def _kept_tasks_text(row: Row) -> str:
    task_count = row["kept_tasks"] + row["lost_tasks"]
    return f"{number(row['kept_tasks'])} of {number(task_count)}" if task_count else UNKNOWN


def _duration(duration_ms: int | None) -> str:
    return UNKNOWN if duration_ms is None else lasted(duration_ms)


def _not_ready_sheet(digest: StreamsDigest) -> Sheet:
    rows = digest.groups.filter(pc.field("state") == NOT_READY).sort_by([("valid_from_ms", "descending")]).to_pylist()
    rows = [row for row in rows if row["valid_to_ms"] is None or row["valid_to_ms"] > row["valid_from_ms"]]
    return Sheet(
        name="streams-not-ready",
        caption="Times in which a streams group was not ready, the newest first",
        heads=(
            Head(label="Group"),
            Head(label="From", hint="log time, UTC"),
            Head(label="To", hint="log time, UTC"),
            Head(label="Group epoch", number=True),
            Head(label="Reason", hint="the log does not name the topic"),
            Head(label="Completeness"),
        ),
        rows=[
            (
                text_cell(name(row["group_id"])),
                time_cell(row["valid_from_ms"]),
                time_cell(row["valid_to_ms"]),
                number_cell(row["group_epoch"]),
                text_cell(not_ready_reason(row["topology_epoch"], row["validated_topology_epoch"])),
                complete_cell(row),
            )
            for row in rows[:ROWS_SHOWN]
        ],
        left_off=max(0, len(rows) - ROWS_SHOWN),
        tools=True,
    )
