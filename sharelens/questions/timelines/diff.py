"""What changed between two moments: scalars before and after, the record offsets whose delivery state differs.

Lives that began in between, and what the group coordinator wrote, are entries of the timeline.
"""

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from sharelens.evidence.as_of import LogPrefix
from sharelens.output import Answer, Column, Row, number_text, shortened
from sharelens.output.layouts import Layout
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.answers.completeness import check_cut, closing_line, incomplete_rows
from sharelens.questions.answers.digests import as_answer
from sharelens.questions.answers.naming import ensure_known, resolve
from sharelens.questions.answers.shape import ABOUT, MARKS, pair_column, range_text
from sharelens.questions.answers.share_partitions import Key, key_of
from sharelens.questions.state import state_table
from sharelens.questions.timelines import timeline
from sharelens.questions.timelines.entries import ORDER, PROOF, WHAT_HAPPENED, event_totals
from sharelens.questions.timelines.life_changes import LifeChanges, life_changes
from sharelens.questions.traces import vocabulary
from sharelens.questions.traces.vocabulary import NEVER_KNOWN
from sharelens.tables.port import Tables
from sharelens.tables.where import Span
from state_model.columnar.schemas import SHARE_PARTITION_STATE, column, comment
from state_model.errors import UsageError

SCALARS = tuple(
    SHARE_PARTITION_STATE.field(name).with_nullable(True)
    for name in (
        *("state_partition", "snapshot_epoch", "state_epoch", "leader_epoch", "start_offset"),
        *("delivery_complete_count", "log_offset", "life_log_offset"),
    )
)
SIDE = pa.struct(
    [
        pa.field("delivery_state", pa.int8()),
        pa.field("delivery_state_name", pa.string()),
        pa.field("delivery_count", pa.int16()),
    ]
)
CHANGED_RANGE = pa.struct(
    [
        pa.field("first_offset", pa.int64()),
        pa.field("last_offset", pa.int64()),
        pa.field("before", SIDE),
        pa.field("after", SIDE),
        pa.field("meaning", pa.string()),
    ]
)
SCHEMA = pa.schema(
    [
        *ABOUT,
        SCALARS[0],
        column("change", pa.string(), "appeared, deleted, changed, recreated or moved"),
        *(
            column(f"{scalar.name}_{side}", scalar.type, f"{side}: {comment(scalar)}")
            for scalar in SCALARS
            for side in ("before", "after")
        ),
        column(
            "changed_ranges",
            pa.list_(CHANGED_RANGE),
            "record offsets whose delivery state differs, with both states (null = no state there) and the meaning",
        ),
        column(
            "entries",
            pa.list_(pa.struct([*WHAT_HAPPENED, *PROOF])),
            "entries of the timeline about lives; the first row of a group has those of the whole group",
        ),
        *MARKS,
    ]
)
RANGES_SHOWN = 4
NO_STATE = "no delivery state any more"
ENTRIES_SHOWN = 20
Batch = Mapping[str, Any]
State = dict[str, Any]
"""A row of `state_table` with life_log_offset."""


def diff(evidence: Tables, key_filter: KeyFilter, from_ms: int, to_ms: int, *, verbose: bool = False) -> Answer:
    """The answer to `sharelens diff`: share partitions that differ as of the two times, sorted by key."""
    if to_ms < from_ms:
        raise UsageError("diff: --to lies before --from; exchange them")
    keys = resolve(evidence, key_filter)
    cuts = (LogPrefix(as_of_ms=from_ms), LogPrefix(as_of_ms=to_ms))
    tables, misplaced = zip(*(state_table(evidence, keys, cut, ("life_log_offset",)) for cut in cuts), strict=True)
    before, after = map(_by_key, tables)
    warnings = [warning for cut in cuts for warning in check_cut(evidence, cut)]
    warnings += itertools.chain.from_iterable(misplaced)
    if not before and not after:
        ensure_known(evidence, key_filter, keys)
    differing = sorted(key for key in before.keys() | after.keys() if _differs(before.get(key), after.get(key)))
    # A state as of a moment has the records up to it.
    changes = life_changes(
        evidence,
        [key for key in differing if _life(before.get(key)) != _life(after.get(key))],
        {group for group, _, _ in differing},
        Span(from_ms=from_ms + 1, to_ms=to_ms + 1),
    )
    topics = _deleted_topics(before[key] for key in differing if key not in after)
    rows = [compared(key, before.get(key), after.get(key), changes, topics) for key in differing]
    table = pa.Table.from_pylist(list(_with_entries(rows, changes)), schema=SCHEMA)
    incomplete = incomplete_rows(table.column("completeness"))
    totals = (_totals(rows), *_entry_totals(changes))
    return Answer(
        table=table,
        columns=LAYOUT.columns(None, _ranges_column(None if verbose else RANGES_SHOWN)),
        summary="\n".join((*totals, NEVER_KNOWN, closing_line(evidence, incomplete))),
        warnings=tuple(dict.fromkeys([*warnings, *changes.warnings])),
        none="no difference",
        digest=as_answer(changes.lives(), ENTRY_LAYOUT.columns(), ORDER, ENTRIES_SHOWN),
    )


def _by_key(table: pa.Table) -> dict[Key, State]:
    return {key_of(row): row for row in table.to_pylist()}


def _differs(before: State | None, after: State | None) -> bool:
    return before is None or after is None or _place(before) != _place(after)


def _life(state: State | None) -> tuple[int, int] | None:
    return None if state is None else (state["state_partition"], state["life_log_offset"])


def _deleted_topics(states: Iterable[State]) -> frozenset[tuple[str, str]]:
    """(group, topic name) of share partitions that are gone."""
    return frozenset((row["group_id"], row["topic"]) for row in states if row["topic"] is not None)


def compared(
    key: Key, before: State | None, after: State | None, changes: LifeChanges, deleted_topics: Collection[Any]
) -> dict[str, Any]:
    """One row of the answer, without entries; `deleted_topics`: (group, topic name) of share partitions now gone."""
    latest_state = after or before or {}
    lives = changes.words(key) if before is not None and after is not None and _life(before) != _life(after) else []
    if before is None and (latest_state["group_id"], latest_state["topic"]) in deleted_topics:
        lives = [vocabulary.TOPIC_RECREATED]
    changed = changed_ranges(_batches(before), _batches(after))
    ranges = [batch | {"meaning": meaning(batch, before, after, lives)} for batch in changed]
    scalars = {}
    for name in (scalar.name for scalar in SCALARS):
        scalars[f"{name}_before"] = before and before[name]
        scalars[f"{name}_after"] = after and after[name]
    return (
        {name: latest_state[name] for name in SCHEMA.names if name in latest_state}
        | scalars
        | {"change": _change(before, after, lives), "changed_ranges": ranges}
    )


def _with_entries(rows: Sequence[dict[str, Any]], changes: LifeChanges) -> Iterator[dict[str, Any]]:
    """The rows with the entries about them; the first row of a group has those about the whole group, too."""
    seen_groups: set[str] = set()
    for row in rows:
        group = row["group_id"]
        of_group = () if group in seen_groups else changes.of_group.get(group, ())
        seen_groups.add(group)
        of_both = [*of_group, *changes.of_share_partition.get(key_of(row), ())]
        yield row | {"entries": sorted(of_both, key=lambda entry: entry["at_ms"])}


def _entry_totals(changes: LifeChanges) -> Iterator[str]:
    if changes.entries.num_rows:
        yield f"between the two moments: {event_totals(changes.entries)}; all that happened: `sharelens timeline`"


def meaning(changed: Batch, before: State | None, after: State | None, lives: Sequence[str]) -> str:
    """What a changed range means, in the fixed vocabulary; `lives`: how new lives of the share partition began."""
    if after is None:
        return vocabulary.LIFE_ENDED
    parts = list(lives)
    if changed["after"] is not None:
        parts.append(vocabulary.in_state(changed["after"]["delivery_state"], changed["after"]["delivery_count"]))
    elif changed["last_offset"] < after["start_offset"]:
        parts.append(vocabulary.PASSED)
    return ", ".join(parts) or NO_STATE


def _totals(rows: Sequence[Mapping[str, Any]]) -> str:
    """Record offsets by what became of them."""
    sizes: Counter[str] = Counter()
    for row in rows:
        for batch in row["changed_ranges"]:
            sizes[batch["meaning"]] += batch["last_offset"] - batch["first_offset"] + 1
    return "record offsets: " + ("; ".join(f"{words} {count}" for words, count in sorted(sizes.items())) or "none")


def _place(row: State) -> tuple[int, int]:
    return row["state_partition"], row["log_offset"]


def _change(before: State | None, after: State | None, lives: Sequence[str]) -> str:
    if vocabulary.RECREATED in lives or vocabulary.TOPIC_RECREATED in lives:
        return "recreated"
    if before is None or after is None:
        return "appeared" if before is None else "deleted"
    return "changed" if before["state_partition"] == after["state_partition"] else "moved"


def _batches(row: State | None) -> Sequence[Batch]:
    return row["state_batches"] if row is not None else []


def changed_ranges(before: Sequence[Batch], after: Sequence[Batch]) -> Iterator[dict[str, Any]]:
    """Offset ranges whose state or count differs; a side without state is null. Both lists ascend, disjoint."""
    bounds = sorted(
        {bound for batch in (*before, *after) for bound in (batch["first_offset"], batch["last_offset"] + 1)}
    )
    open_range: dict[str, Any] | None = None
    old, new = _Cursor(before), _Cursor(after)
    for first, end in itertools.pairwise(bounds):
        was, now = old.at(first), new.at(first)
        if was == now:
            continue
        if (
            open_range
            and open_range["last_offset"] + 1 == first
            and (open_range["before"], open_range["after"]) == (was, now)
        ):
            open_range["last_offset"] = end - 1
            continue
        if open_range:
            yield open_range
        open_range = {"first_offset": first, "last_offset": end - 1, "before": was, "after": now}
    if open_range:
        yield open_range


class _Cursor:
    """Walks ascending, disjoint batches along ascending offsets."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        self.batches = batches
        self.next = 0

    def at(self, offset: int) -> dict[str, Any] | None:
        """State and count at the offset; None where no batch covers it."""
        while self.next < len(self.batches) and self.batches[self.next]["last_offset"] < offset:
            self.next += 1
        if self.next == len(self.batches) or self.batches[self.next]["first_offset"] > offset:
            return None
        batch = self.batches[self.next]
        return {name: batch[name] for name in ("delivery_state", "delivery_state_name", "delivery_count")}


def _ranges_column(range_limit: int | None) -> Column:
    return Column(
        heading="RECORD-OFFSETS",
        cell=lambda row: _ranges_cell(row, range_limit),
        fields=("changed_ranges",),
        short=_short_ranges,
    )


def _ranges_cell(row: Row, range_limit: int | None) -> str:
    ranges = row["changed_ranges"]
    if not isinstance(ranges, list) or not ranges:
        return "-"
    remainder_text = (
        f", ... {len(ranges) - range_limit} more" if range_limit is not None and len(ranges) > range_limit else ""
    )
    return ", ".join(map(_range_text, ranges[:range_limit])) + remainder_text


def _short_ranges(row: Row, width: int) -> str:
    ranges = row["changed_ranges"]
    return shortened(ranges, _range_text, width) if isinstance(ranges, list) else number_text(None)


def _range_text(changed: Batch) -> str:
    was, now = changed["before"], changed["after"]
    offsets = range_text({**changed, "delivery_state_name": "", "delivery_count": ""}).split(" ")[0]
    return f"{offsets} {_side_text(was)}>{_side_text(now)}"


def _side_text(side: Batch | None) -> str:
    return "-" if side is None else f"{side['delivery_state_name']}/{side['delivery_count']}"


LAYOUT = Layout(
    schema=SCHEMA,
    fields="group_id topic partition leader_epoch_after start_offset_after change delivery_complete_count_after "
    "state_epoch_after snapshot_epoch_after state_partition log_offset_after completeness changed_ranges",
    cells=(
        pair_column("LEADER-EPOCH", "leader_epoch"),
        pair_column("START-OFFSET", "start_offset"),
        pair_column("DELIVERY-COMPLETE-COUNT", "delivery_complete_count"),
        pair_column("STATE-EPOCH", "state_epoch"),
        pair_column("SNAPSHOT-EPOCH", "snapshot_epoch"),
        pair_column("STATE-PARTITION", "state_partition", ("state_partition",)),
        pair_column("STATE-LOG-OFFSET", "log_offset"),
        _ranges_column(RANGES_SHOWN),
    ),
    important="GROUP TOPIC PARTITION CHANGE START-OFFSET RECORD-OFFSETS DELIVERY-COMPLETE-COUNT",
)
ENTRY_LAYOUT = replace(
    timeline.LAYOUT, important="AT EVENT GROUP TOPIC PARTITION TEXT LOG-OFFSET LOG-PARTITION LOG-TOPIC"
)
