"""From gathered rows to tables: dead letters, unknown lags, extents and gaps of the evidence."""

from collections.abc import Sequence

import pyarrow.compute as pc

from sharelens.measures.dlq.schemas import DUPLICATE, MISSING, UNEXPECTED
from sharelens.output import Answer
from sharelens.output.wording import UNKNOWN as DASH
from sharelens.output.wording import counted, name, number, offsets, place
from sharelens.questions.answers.share_partitions import Row, key_of
from sharelens.questions.dead_letters.dlq import counts_of
from sharelens.report.model import Cell, Head, Sheet
from sharelens.report.orders import ROWS_SHOWN
from sharelens.report.sheets import Anchors, number_cell, offset_cell, text_cell, time_cell
from sharelens.tables.cover import StatePartitionCover

PARTS_SHOWN = 60


def dead_letter_words(answer: Answer) -> str:
    """One sentence with the counts."""
    counts = [f"{counted(count, 'record')} {status}" for status, count in counts_of(answer.sums).items() if count]
    return f"{', '.join(counts)}." if counts else "No dead letter is in the evidence, and none was due."


def dead_letters_sheet(answer: Answer, anchors: Anchors, command: str) -> Sheet:
    """One row a dead letter, or a due one; problems first."""
    return Sheet(
        name="dead-letters-table",
        caption="Dead letters and archived records, problems first",
        heads=(
            Head(label="Status"),
            Head(label="Group"),
            Head(label="Share partition"),
            Head(label="Offset", number=True),
            Head(label="Cause"),
            Head(label="Deliveries", number=True),
            Head(label="Archived", hint="UTC"),
            Head(label="Dead-lettered", hint="timestamp of the dead letter, UTC"),
            Head(label="Dead letter", hint="topic-partition @ offset"),
            Head(label="Why"),
        ),
        rows=[
            (
                Cell(text=row["status"], mark=_mark(row["status"])),
                text_cell(name(row["group_id"])),
                text_cell(place(row["topic"], row["topic_id"], row["partition"])),
                offset_cell(anchors, key_of(row), row["offset"], row["last_offset"]),
                text_cell((row["cause"] or DASH).replace("_", " ")),
                number_cell(row["delivery_count"]),
                time_cell(row["archived_ms"]),
                time_cell(row["dead_lettered_ms"]),
                text_cell(_letter(row)),
                text_cell((row["reason"] or DASH).replace("_", " ")),
            )
            for row in answer.table.to_pylist()
        ],
        left_off=max(0, answer.row_count - ROWS_SHOWN),
        command=command,
        empty="no dead letter, and none was due",
        tools=True,
    )


def _mark(status: str) -> str | None:
    return "wrong" if status == MISSING else "watch" if status in (UNEXPECTED, DUPLICATE) else None


def _letter(row: Row) -> str:
    if row["dlq_topic"] is None:
        return DASH
    where = name(row["dlq_topic"])
    return where if row["dlq_offset"] is None else f"{where}-{row['dlq_partition']} @ {number(row['dlq_offset'])}"


def unknown_sheet(lags: Answer, command: str) -> Sheet:
    """Why lags are unknown, one row a reason."""
    table = lags.table.filter(pc.field("lag").is_null())
    counts = table.group_by("unknown_reason").aggregate([("partition", "count")]).sort_by("unknown_reason")
    return Sheet(
        name="unknown-table",
        caption="Share partitions whose lag is unknown",
        heads=(Head(label="Reason"), Head(label="Share partitions", number=True)),
        rows=[
            (text_cell(str(row["unknown_reason"]).replace("_", " ")), number_cell(row["partition_count"]))
            for row in counts.to_pylist()
        ],
        command=command,
        empty="every lag is known",
    )


def evidence_sheet(cover: Sequence[StatePartitionCover], command: str) -> Sheet:
    """One row a state partition, those with losses first."""
    parts = sorted(
        cover,
        key=lambda part: (-len(part.gaps), -part.quarantined, -part.held_back, part.state_partition),
    )
    return Sheet(
        name="evidence-table",
        caption="State partitions in evidence, those with gaps first",
        heads=(
            Head(label="State partition", number=True),
            Head(label="From", hint="log time of the first record, UTC"),
            Head(label="To", hint="log time of the last record, UTC"),
            Head(label="First state-log offset", number=True),
            Head(label="End state-log offset", number=True),
            Head(label="Log start", number=True),
            Head(label="Gaps", number=True),
            Head(label="Quarantined", number=True),
            Head(label="Held back", number=True, hint="offsets at or above the high watermark"),
        ),
        rows=[
            (
                number_cell(part.state_partition),
                time_cell(part.first_ms),
                time_cell(part.last_ms),
                number_cell(part.first_offset),
                number_cell(part.end_offset_exclusive),
                number_cell(part.log_start_offset),
                Cell(text=number(len(part.gaps)), sort=len(part.gaps), mark="watch" if part.gaps else None),
                number_cell(part.quarantined),
                number_cell(part.held_back),
            )
            for part in parts[:PARTS_SHOWN]
        ],
        left_off=max(0, len(parts) - PARTS_SHOWN),
        command=command,
        empty="no state partition",
    )


def gaps_sheet(cover: Sequence[StatePartitionCover], command: str) -> Sheet:
    """One row a lost range of the state log."""
    losses = [(part.state_partition, loss) for part in cover for loss in part.gaps]
    return Sheet(
        name="gaps-table",
        caption="Gaps: state-log offsets that the evidence lacks",
        heads=(
            Head(label="State partition", number=True),
            Head(label="State-log offsets", number=True),
            Head(label="Reason"),
            Head(label="Only of"),
        ),
        rows=[
            (
                number_cell(number_),
                Cell(text=offsets(loss.first_offset, loss.last_offset), sort=loss.first_offset),
                text_cell(loss.reason.replace("_", " ")),
                text_cell(DASH if loss.group_id is None else name(loss.group_id)),
            )
            for number_, loss in losses[:ROWS_SHOWN]
        ],
        left_off=max(0, len(losses) - ROWS_SHOWN),
        command=command,
        empty="no gap",
    )
