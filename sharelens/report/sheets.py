"""From gathered rows to tables: groups, stalls, archived and redelivered records."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow.compute as pc

from sharelens.measures.figures import of_sums
from sharelens.output import Answer
from sharelens.output.wording import UNKNOWN, moment, name, number, offsets, place
from sharelens.parameters.times import lasted
from sharelens.questions.answers.completeness import COMPLETE
from sharelens.questions.answers.share_partitions import Key, Row, key_of
from sharelens.questions.stalled import WHAT_IT_MAY_BE
from sharelens.report.gather import Gathered
from sharelens.report.model import Cell, Head, Sheet
from sharelens.report.orders import ROWS_SHOWN
from sharelens.report.ranking import GroupRanking
from state_model.share_records import delivery_state_name

GROUPS_SHOWN = 500
Anchors = Mapping[tuple[Key, int], str]
"""Where on the page the trace of a record stands."""


def text_cell(text: object) -> Cell:
    """A cell of words; names are made safe to look at before they come here."""
    return Cell(text=str(text))


def number_cell(value: int | None) -> Cell:
    """A figure; unknown ones sort below all others."""
    return Cell(text=number(value), sort=-1 if value is None else value)


def time_cell(value: int | None) -> Cell:
    """A moment in UTC."""
    return Cell(text=moment(value), sort=value or 0, is_whole=True)


def offset_cell(anchors: Anchors, key: Key, first: int, last: int | None = None) -> Cell:
    """Offsets, with a link to the trace of the first where the page has one."""
    return Cell(text=offsets(first, last), sort=first, href=anchors.get((key, first)))


def complete_cell(row: Row) -> Cell:
    """The completeness of a row and its reason."""
    mark = row["completeness"]
    if mark == COMPLETE:
        return Cell(text=COMPLETE)
    return Cell(
        text=f"{mark} ({row['completeness_reason']})" if row["completeness_reason"] else str(mark), mark="watch"
    )


def groups_sheet(gathered: Gathered, command: str) -> Sheet:
    """One row a share group, the worst first."""
    rows = sorted(_group_rows(gathered).values(), key=lambda row: _worst_first(gathered.ranking, row))
    return Sheet(
        name="groups-table",
        caption="Share groups, the worst first",
        heads=(
            Head(label="Group"),
            Head(label="State", hint="by the group coordinator's log"),
            Head(label="Members", number=True),
            Head(label="Share partitions", number=True),
            Head(label="Lag", number=True, hint="Kafka's lag (KIP-1226), summed; + where it is unknown for some"),
            Head(label="Stands still since", hint="the earliest of its share partitions, UTC"),
            Head(label="Archived", number=True, hint="records, without control records and gaps; once a life"),
            Head(label="Redelivered", number=True, hint="records delivered more than once; once a kind and life"),
            Head(label="Last state write", hint="UTC"),
            Head(label="Completeness"),
        ),
        rows=[_group_cells(row) for row in rows[:GROUPS_SHOWN]],
        left_off=max(0, len(rows) - GROUPS_SHOWN),
        command=command,
        empty="no share group",
        tools=True,
    )


def _worst_first(ranking: GroupRanking, row: Row) -> tuple[Any, ...]:
    return (ranking.place(row["group_id"]), -row["given_up"], -row["redelivered"], row["group_id"])


def _group_rows(gathered: Gathered) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}

    def of(group: str) -> dict[str, Any]:
        return rows.setdefault(
            group,
            {
                "group_id": group, "state": None, "members": None, "share_partitions": 0, "lag": None, "unknown": 0,
                "still_since_ms": None, "still_ms": 0, "still": 0, "given_up": 0, "redelivered": 0, "written_ms": None,
                "marks": set(),
            },
        )  # fmt: skip

    for share_group in gathered.signs.share_groups:
        of(share_group)
    for group in [] if gathered.signs.groups is None else gathered.signs.groups.to_pylist():
        of(group["group_id"]).update(state=group["state"], members=group["member_count"])
    answers = gathered.answers
    by_group = (
        answers["lag"]
        .table.group_by("group_id")
        .aggregate([("lag", "sum"), ("lag", "count"), ("partition", "count"), ("completeness", "distinct")])
    )
    for row in by_group.to_pylist():
        of(row["group_id"]).update(
            share_partitions=row["partition_count"],
            lag=row["lag_sum"],
            unknown=row["partition_count"] - row["lag_count"],
            marks=set(row["completeness_distinct"]),
        )
    for group, written_ms in gathered.written_ms.items():
        of(group)["written_ms"] = written_ms
    stalls = answers["stalled"].sums.filter(pc.field("is_over") == 0).group_by("group_id")
    for row in stalls.aggregate([("duration_ms", "max"), ("since_ms", "min"), ("rows", "sum")]).to_pylist():
        of(row["group_id"]).update(
            still=row["rows_sum"], still_ms=row["duration_ms_max"] or 1, still_since_ms=row["since_ms_min"]
        )
    archived = of_sums("archived_records", answers["poison"].sums)
    for sums, field in ((archived, "given_up"), (answers["redelivered"].sums, "redelivered")):
        for row in sums.group_by("group_id").aggregate([("records", "sum")]).to_pylist():
            of(row["group_id"])[field] = row["records_sum"]
    return rows


def _group_cells(row: Row) -> Sequence[Cell]:
    since = Cell(text=UNKNOWN, sort=0)
    if row["still_since_ms"] is not None:
        several = f" ({row['still']})" if row["still"] > 1 else ""
        since = Cell(text=moment(row["still_since_ms"]) + several, sort=row["still_ms"], mark="wrong", is_whole=True)
    unknown = "+" if row["unknown"] and row["lag"] is not None else ""
    marks = row["marks"] - {COMPLETE}
    return (
        text_cell(name(row["group_id"])),
        text_cell(row["state"] or UNKNOWN),
        number_cell(row["members"]),
        number_cell(row["share_partitions"]),
        Cell(text=number(row["lag"]) + unknown, sort=-1 if row["lag"] is None else row["lag"]),
        since,
        Cell(text=number(row["given_up"]), sort=row["given_up"], mark="watch" if row["given_up"] else None),
        number_cell(row["redelivered"]),
        time_cell(row["written_ms"]),
        Cell(text=", ".join(sorted(marks)), mark="watch")
        if marks
        else Cell(text=COMPLETE if row["marks"] else UNKNOWN),
    )


def stalls_sheet(answer: Answer, anchors: Anchors, command: str) -> Sheet:
    """One row a stall, lasting ones first, then the longest."""
    return Sheet(
        name="stalls-table",
        caption="Stalls, those that still last first",
        heads=(
            Head(label="Group"),
            Head(label="Share partition"),
            Head(label="Offset", number=True, hint="the first incomplete record offset"),
            Head(label="State there"),
            Head(label="Since", hint="UTC"),
            Head(label="Until", hint="UTC; – the stall lasts"),
            Head(label="Lasted", number=True),
            Head(label="Kind"),
            Head(label="Done behind", number=True),
            Head(label="Completeness"),
        ),
        rows=[
            (
                text_cell(name(row["group_id"])),
                text_cell(place(row["topic"], row["topic_id"], row["partition"])),
                offset_cell(anchors, key_of(row), row["first_incomplete_offset"]),
                _state_cell(row),
                time_cell(row["since_ms"]),
                time_cell(row["until_ms"]),
                Cell(
                    text=lasted(row["duration_ms"]),
                    sort=row["duration_ms"] or 0,
                    mark=None if row["until_ms"] else "wrong",
                ),
                text_cell(str(row["kind"]).replace("_", " ")),
                number_cell(row["finished_behind"]),
                complete_cell(row),
            )
            for row in answer.table.to_pylist()
        ],
        left_off=max(0, answer.row_count - ROWS_SHOWN),
        command=command,
        empty="no share partition stalled",
        tools=True,
    )


def stall_kinds(answer: Answer) -> Sequence[str]:
    """Possible causes of each stall kind, and what to check."""
    there = set(answer.sums.column("kind").unique().to_pylist())
    return [
        f"{kind.replace('_', ' ')}: {words.replace('`', '')}."
        for kind, words in WHAT_IT_MAY_BE.items()
        if kind in there
    ]


def _state_cell(row: Row) -> Cell:
    state = row["delivery_state"]
    if state is None:
        return text_cell(UNKNOWN)
    state_name = delivery_state_name(state)
    return text_cell(f"{state_name}/{row['delivery_count']}")


def poison_sheet(answer: Answer, anchors: Anchors, command: str) -> Sheet:
    """One row a range of records that a group archived: the worst severity first, then the newest."""
    return Sheet(
        name="poison-table",
        caption="Archived records: groups with problems now first, then the newest",
        heads=(
            Head(label="Group"),
            Head(label="Share partition"),
            Head(label="Offset", number=True),
            Head(label="State", hint="delivery state and delivery count"),
            Head(label="Cause", hint="and what tells it"),
            Head(label="Limit", number=True, hint="share.delivery.count.limit"),
            Head(label="First outcome", hint="UTC"),
            Head(label="Archived", hint="UTC"),
            Head(label="Completeness"),
        ),
        rows=[
            (
                text_cell(name(row["group_id"])),
                text_cell(place(row["topic"], row["topic_id"], row["partition"])),
                offset_cell(anchors, key_of(row), row["offset"], row["last_offset"]),
                text_cell(f"{row['delivery_state_name']}/{row['delivery_count']}"),
                text_cell(_cause(row)),
                number_cell(row["delivery_count_limit"]),
                time_cell(row["first_outcome_ms"]),
                time_cell(row["last_outcome_ms"]),
                complete_cell(row),
            )
            for row in answer.table.to_pylist()
        ],
        left_off=max(0, answer.row_count - ROWS_SHOWN),
        command=command,
        empty="no archived record",
        tools=True,
    )


def _cause(row: Row) -> str:
    """The cause and, in brackets, its source."""
    cause, source = ((row[column] or UNKNOWN).replace("_", " ") for column in ("cause", "cause_source"))
    return cause if source == UNKNOWN else f"{cause} ({source})"


def redelivered_sheet(answer: Answer, ranking: GroupRanking, command: str) -> Sheet:
    """One row a group and kind."""
    sums = answer.sums.group_by(["group_id", "kind"])
    by_kind = sums.aggregate([("records", "sum"), ("max_delivery_count", "max"), ("last_ms", "max")]).to_pylist()
    by_kind.sort(key=lambda row: (ranking.place(row["group_id"]), -row["records_sum"], row["group_id"], row["kind"]))
    return Sheet(
        name="redelivered-table",
        caption="Redelivered records by group and kind",
        heads=(
            Head(label="Group"),
            Head(label="Kind"),
            Head(label="Records", number=True),
            Head(label="Highest delivery count", number=True),
            Head(label="Newest", hint="UTC"),
        ),
        rows=[
            (
                text_cell(name(row["group_id"])),
                text_cell(str(row["kind"]).replace("_", " ")),
                number_cell(row["records_sum"]),
                number_cell(row["max_delivery_count_max"]),
                time_cell(row["last_ms_max"]),
            )
            for row in by_kind[:ROWS_SHOWN]
        ],
        left_off=max(0, len(by_kind) - ROWS_SHOWN),
        command=command,
        empty="no outcome of a second delivery",
        tools=True,
    )
