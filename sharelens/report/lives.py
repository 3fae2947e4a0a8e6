"""The lives of share partitions on a page: creations, deletions, resets, start offsets that went back."""

from sharelens.output import Answer
from sharelens.output.wording import UNKNOWN, name, number, offsets, place
from sharelens.questions.answers.share_partitions import Row
from sharelens.questions.life import counts_of
from sharelens.report.model import Cell, Head, Sheet
from sharelens.report.orders import EPOCH_MOVES, ROWS_SHOWN
from sharelens.report.sheets import complete_cell, text_cell, time_cell


def life_words(answer: Answer) -> str:
    """One sentence with the counts."""
    counts = counts_of(answer.sums)
    if not counts:
        return "No creation, deletion or reset is in the evidence."
    events = ", ".join(f"{event.replace('_', ' ')} {number(count)}" for event, count in counts.items())
    moves = "" if counts.keys().isdisjoint(EPOCH_MOVES) else " Moved epochs are counted only."
    return f"Events of share partitions: {events}.{moves}"


def lives_sheet(answer: Answer, command: str) -> Sheet:
    """One row an event; groups with problems now first, then the newest."""
    return Sheet(
        name="lives-table",
        caption="Lives of share partitions: groups with problems now first, then the newest",
        heads=(
            Head(label="Group"),
            Head(label="Share partition"),
            Head(label="Event"),
            Head(label="At", hint="log time, UTC"),
            Head(label="Start offset", number=True, hint="before → after"),
            Head(label="Skipped", number=True, hint="record offsets that the new life begins behind"),
            Head(label="Replayed", number=True, hint="record offsets that the new life delivers again"),
            Head(label="Deleted by", hint="inferred from __consumer_offsets"),
            Head(label="State-log record", number=True, hint="partition @ offset of __share_group_state"),
            Head(label="Completeness"),
        ),
        rows=[
            (
                text_cell(name(row["group_id"])),
                text_cell(place(row["topic"], row["topic_id"], row["partition"])),
                Cell(text=str(row["event"]).replace("_", " "), mark=_mark(row["event"])),
                time_cell(row["log_time_ms"]),
                _start_cell(row),
                _range_cell(row, "skipped"),
                _range_cell(row, "replayed"),
                text_cell((row["deleted_by_inferred"] or UNKNOWN).replace("_", " ")),
                Cell(text=f"{row['state_partition']} @ {number(row['log_offset'])}", sort=row["log_offset"]),
                complete_cell(row),
            )
            for row in answer.table.to_pylist()
        ],
        left_off=max(0, answer.row_count - ROWS_SHOWN),
        command=command,
        empty="none but moved epochs",
        tools=True,
    )


def _mark(event: str) -> str | None:
    return "watch" if event in ("deleted", "recreated", "reset", "start_offset_went_back") else None


def _start_cell(row: Row) -> Cell:
    before, after = (
        UNKNOWN if value is None or value < 0 else number(value)
        for value in (row["start_offset_before"], row["start_offset_after"])
    )
    sort = -1 if row["start_offset_after"] is None else row["start_offset_after"]
    return Cell(text=after if before == after else f"{before} → {after}", sort=sort)


def _range_cell(row: Row, kind: str) -> Cell:
    first, last = row[f"{kind}_first_offset"], row[f"{kind}_last_offset"]
    return Cell(text=UNKNOWN, sort=-1) if first is None else Cell(text=offsets(first, last), sort=first)
