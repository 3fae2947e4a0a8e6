"""Findings as sentences, the worst first, and the key figures."""

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from measures.dlq_schemas import DUPLICATE, MISSING, UNEXPECTED
from measures.stalls import BLOCKED, DEAD_LETTER_PENDING, SILENT, WINDOW_FULL
from sharelens.questions.completeness import COMPLETE
from sharelens.report.digests import DeadLetterDigest, PoisonDigest, total
from sharelens.report.gather import Gathered, still
from sharelens.report.model import Finding, Tile, Weight
from sharelens.report.share_partitions import Row, key_of
from sharelens.report.sheets import Anchors
from sharelens.times import lasted
from sharelens.wording import UNKNOWN, clock, counted, name, number, place

AFTER_ACKNOWLEDGED = "delivered_after_acknowledged"
MOST_OF_A_KIND = 4


def findings(gathered: Gathered, anchors: Anchors) -> Sequence[Finding]:
    """The findings: the worst of each kind and the number of others; one sentence when there is none."""
    collected = [
        *_standing_still(gathered, anchors),
        *_given_up(gathered.poison, gathered.now_ms),
        *_dead_letters(gathered.dead_letters),
        *_again(gathered.redelivered),
        *_evidence(gathered),
    ]
    if not any(finding.weight in (Weight.WRONG, Weight.WATCH) for finding in collected):
        collected.insert(
            0, Finding(weight=Weight.GOOD, text="No share partition stands still, and no record was archived.")
        )
    return sorted(collected, key=lambda finding: list(Weight).index(finding.weight))


def _with_more(shown: Sequence[Finding], left: int, noun: str, rest: str, href: str) -> Sequence[Finding]:
    """The first few of a kind, and a sentence that counts the others: `2 more groups archived records.`"""
    if left <= 0:
        return shown
    text = f"{left:,} more {noun if left == 1 else noun + 's'} {rest}."
    return [*shown, Finding(weight=shown[-1].weight, text=text, href=href)]


def _standing_still(gathered: Gathered, anchors: Anchors) -> Sequence[Finding]:
    shown = [
        Finding(
            weight=Weight.WRONG,
            text=stall_sentence(row, gathered.now_ms),
            more=_behind(row),
            href=anchors.get((key_of(row), row["first_incomplete_offset"]), "#stalls"),
        )
        for row in still(gathered.stalls.first).slice(0, MOST_OF_A_KIND).to_pylist()
    ]
    left = total(gathered.stalls.still(), "rows") - len(shown)
    return _with_more(shown, left, "share partition", "stands still" if left == 1 else "stand still", "#stalls")


def stall_sentence(row: Row, now_ms: int) -> str:
    """`orders stands still at offset 4,711 of payments-3 since 03:12:05 (2 h 10 min).` The date when it is another."""
    group, where = name(row["group_id"]), place(row["topic"], row["topic_id"], row["partition"])
    since = f"since {clock(row['since_ms'], now_ms)} ({lasted(row['duration_ms'])})"
    first = number(row["first_incomplete_offset"])
    if row["kind"] == SILENT:
        return f"{group} makes no progress in {where} from offset {first} on {since}."
    return f"{group} stands still at offset {first} of {where} {since}."


def _behind(row: Row) -> str:
    """Facts of the log about the cause."""
    done = counted(row["finished_behind"], "record")
    waiting = "" if row["end_offset"] is None else (
        f"{counted(max(0, row['end_offset'] - row['first_incomplete_offset']), 'offset')} from there to the end"
    )  # fmt: skip
    behind = f"{done} done behind it" if row["finished_behind"] else ""
    match row["kind"]:
        case kind if kind == DEAD_LETTER_PENDING:
            cause = "its dead letter is not finished"
        case kind if kind == WINDOW_FULL:
            cause = f"the window is full ({number(row['window_used'])} of {number(row['window_limit'])})"
        case kind if kind == BLOCKED:
            cause = f"delivered {counted(row['delivery_count'], 'time')}" if row["delivery_count"] else ""
        case _:
            cause = "no state was written since"
    return "; ".join(part for part in (behind, cause, waiting) if part)


def _given_up(given_up: PoisonDigest, now_ms: int) -> Sequence[Finding]:
    """One for each group, the most records first."""
    groups = _by_group(given_up.sums)
    shown = []
    for group, count in groups[:MOST_OF_A_KIND]:
        newest = given_up.newest.filter(pc.equal(given_up.newest.column("group_id"), group)).to_pylist()[0]
        where = place(newest["topic"], newest["topic_id"], newest["partition"])
        finding = Finding(
            weight=Weight.WATCH,
            text=f"{name(group)} archived {counted(count, 'record')}.",
            more=f"the newest at {clock(newest['last_outcome_ms'], now_ms)}: offset {number(newest['last_offset'])} of "
            f"{where}, delivery count {newest['delivery_count']}",
            href="#poison",
        )
        shown.append(finding)
    return _with_more(shown, len(groups) - len(shown), "group", "archived records", "#poison")


def _dead_letters(digest: DeadLetterDigest) -> Iterable[Finding]:
    """One for each status that is a finding."""
    counts = digest.counts()
    for status, weight in ((MISSING, Weight.WRONG), (UNEXPECTED, Weight.WATCH), (DUPLICATE, Weight.WATCH)):
        if status in counts:
            groups = digest.of_status(status).column("group_id").unique().to_pylist()
            whose = name(groups[0]) if len(groups) == 1 else counted(len(groups), "group")
            text = f"{counted(counts[status], f'{status} dead letter')} of {whose}."
            yield Finding(weight=weight, text=text, href="#dead-letters")


def _again(redelivered: pa.Table) -> Sequence[Finding]:
    after = redelivered.filter(pc.equal(redelivered.column("kind"), AFTER_ACKNOWLEDGED))
    groups = _by_group(after)
    shown = [
        Finding(
            weight=Weight.WATCH,
            text=f"{name(group)} received {counted(count, 'record')} again after they had been acknowledged.",
            href="#redelivered",
        )
        for group, count in groups[:MOST_OF_A_KIND]
    ]
    return _with_more(shown, len(groups) - len(shown), "group", "received acknowledged records again", "#redelivered")


def _evidence(gathered: Gathered) -> Iterable[Finding]:
    gaps = sum(len(part.losses) for part in gathered.cover)
    quarantined = sum(part.quarantined for part in gathered.cover)
    if gaps or quarantined:
        text = f"The evidence has {counted(gaps, 'gap')}, and {counted(quarantined, 'broken piece')} set aside."
        yield Finding(weight=Weight.NOTE, text=text, more="what lay in them is not in this report", href="#evidence")
    unknown = gathered.lag.column("lag").null_count
    if unknown:
        text = f"The lag of {counted(unknown, 'share partition')} is unknown."
        yield Finding(weight=Weight.NOTE, text=text, href="#unknown")


def _by_group(sums: pa.Table) -> list[tuple[str, int]]:
    """Groups and their records, the most first."""
    by_group = sums.group_by("group_id").aggregate([("records", "sum")])
    order = [("records_sum", "descending"), ("group_id", "ascending")]
    return [(row["group_id"], row["records_sum"]) for row in by_group.sort_by(order).to_pylist()]


def tiles(gathered: Gathered) -> Sequence[Tile]:
    """The row of figures under the findings."""
    lags = gathered.lag
    groups = set(lags.column("group_id").unique().to_pylist())
    standing, over = total(gathered.stalls.still(), "rows"), total(gathered.stalls.over(), "rows")
    given_up, again = total(gathered.poison.sums, "records"), total(gathered.redelivered, "records")
    unknown = lags.column("lag").null_count
    lag = pc.sum(lags.column("lag")).as_py()
    incomplete = int(pc.sum(pc.not_equal(lags.column("completeness"), COMPLETE)).as_py() or 0)
    return (
        Tile(label="Share groups", figure=number(len(groups)), more=counted(lags.num_rows, "share partition")),
        Tile(
            label="Lag",
            figure=UNKNOWN if lag is None else number(lag) + ("+" if unknown else ""),
            more=f"unknown for {number(unknown)}" if unknown else "records",
        ),
        Tile(
            label="Standing still",
            figure=number(standing),
            more=f"{number(over)} over",
            weight=Weight.WRONG if standing else Weight.NOTE,
        ),
        Tile(
            label="Archived", figure=number(given_up), more="records", weight=Weight.WATCH if given_up else Weight.NOTE
        ),
        Tile(label="Redelivered", figure=number(again), more="records"),
        Tile(
            label="Completeness",
            figure="complete" if not incomplete else f"{number(incomplete)} not complete",
            more="all share partitions" if not incomplete else "share partitions",
            weight=Weight.WATCH if incomplete else Weight.NOTE,
        ),
    )
