"""Which rows an increment recomputes: the rule, and its arithmetic for each kind of measure.

1. New evidence about a share partition is a record of its log, a batch header of its topic, or a changed completeness.
2. Its reach is the lowest record offset that the evidence can affect: the first offset of a range that a new record
   made, its start offset, the first offset that a new header describes. A snapshot that repeats the state is no
   evidence. Rows of a measure about record offsets that lie wholly below the reach stay; the others are recomputed from
   the lowest of their offsets on.
3. Measures about the state log (stalls, life events) are recomputed from a record on: the last measured one; the first
   one of the interval that lasts, if new headers reach its offset; or the last one of the life before
   (`gold.progress`).
4. Rows about moments of log time (lag over time) are recomputed from a moment on: that of the first new record or, if
   it is earlier, of the first new header. A share partition is measured whole where that lies more than
   OPEN_MS before the last measured record.
5. A contribution to latency and attempts is recomputed when it reaches the reach, or may still grow: its block of
   record offsets reaches there and its hour is not over.
6. What is one row a share partition (lag, progress) is replaced.
7. Evidence out of log order has the lowest reach of all, and the share partition is measured whole: a hole that was
   detected or filled, a name, a setting, another state partition, a header below what stood first.
8. `is_final` marks rows that evidence in log order cannot change any more: below the start offset and, of
   contributions, of an hour or a block that is over; of an interval or a life that ended; of moments before OPEN_MS,
   but for the newest of those. They lie in files of their
   own, which an increment in log order neither reads nor rewrites. Late evidence reaches below the start offset, and
   replaces final rows too. Open rows of a share partition stay in their files where the evidence adds none and makes
   none final.
9. What retention has cut (`gold.measure_base`) is never recomputed.

   record offsets   0 ............ start offset ......... reach .......... end
   poison rows      [ final files: left alone ][ kept ][ recomputed from here on
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jobs.measure.bases import not_across
from jobs.measure.inputs import LakeInputs, View, start_offsets
from jobs.measure.reading import Flags, Ints
from sharelens.lake.tables import TABLES
from sharelens.measures.catalog import STAGED, Measure, Rule
from sharelens.measures.histories.lives import BLIND
from sharelens.measures.histories.numbers import RANGE_FIRST, RANGE_LAST
from sharelens.measures.histories.settled import (
    BLOCK_BITS,
    BLOCK_OFFSETS,
    HOUR_MS,
    NOT_KNOWN,
    Settled,
    settled_of,
)
from sharelens.measures.lag_over_time import minutes_of
from sharelens.measures.latency.schemas import OPEN, OUTCOMES
from sharelens.measures.ranges.places import codes_in
from sharelens.measures.ranges.steps import numbered, together
from sharelens.measures.stalls import progress
from state_model.columnar.codes import ABOVE_ALL, BELOW_ALL, ints
from state_model.columnar.keys import PLACE_KEY

OPEN_MS = HOUR_MS
"""So long before the last record rows about moments can change: headers and records are read one after the other."""
MARK = ["completeness", "completeness_reason"]
# Contributions of one place, block, hour and outcome, a group, are recomputed, and final, together. Groups are an array
# of four rows:
GROUP_PLACE, GROUP_BLOCK, GROUP_HOUR, GROUP_OUTCOME = range(4)
GROUP_COLUMNS = [*PLACE_KEY, "hour_ms", "outcome", "first_offset", "last_offset"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contributions:
    """Which contributions are recomputed: `groups`, from rows of the record offset `since` on, and new ones.

    `floor`: the lowest record offset, for each place, that these hold. `kept_groups`: groups that are not final and
    stay, with the highest offset of each (`kept_last`).
    """

    since: Ints
    floor: Ints
    groups: Ints
    kept_groups: Ints
    kept_last: Ints


class Reach:
    """The rows to recompute of a task's share partitions. Arrays have one entry for each place, in their order.

    It keeps what it computes, and not `inputs`, to which the views refer: in a circle, the histories of a task would
    stay in memory beside those of the next one until the garbage collector runs.
    """

    def __init__(self, inputs: LakeInputs) -> None:
        self.inputs = inputs

    def since(self, measure: Measure) -> Ints:
        """From which value of `measure.order` on final rows are replaced; ABOVE_ALL: none, BELOW_ALL: all."""
        inputs = self.inputs
        if measure.rule is Rule.BY_RECORD_OFFSET:
            return self._since_offset[measure.table]
        if measure.rule is Rule.BY_BLOCK:
            return self.contributions.since
        if measure.rule is Rule.BY_MOMENT:
            return self._since_ms
        if measure.rule is Rule.BY_INTERVAL:
            since = inputs.progress_values("since_log_offset", BELOW_ALL)
            return np.where(inputs.is_whole | (since >= 0), since, inputs.measured_to + 1)
        return np.where(inputs.is_whole, BELOW_ALL, inputs.read_from + 1)

    def reaches_final(self, measure: Measure) -> Flags:
        """Places whose final rows are replaced."""
        late: Flags | bool = False
        if _by_record_offset(measure):
            late = self.since(measure) < self.inputs.passed_before
        elif measure.rule is Rule.BY_MOMENT:
            late = self.since(measure) == BELOW_ALL
        return np.asarray(self.inputs.is_whole | late)

    def replaces_open(self, measure: Measure) -> Flags:
        """Places whose open rows are replaced, apart from those that have recomputed rows."""
        inputs = self.inputs
        if measure.rule in (Rule.WHOLE_LOG, Rule.BY_INTERVAL):
            return np.ones(inputs.places.count, np.bool_)
        if measure.rule is Rule.BY_LOG_OFFSET:
            moved = self.final_below(measure) != inputs.progress_values("read_from_log_offset", -1) + 1
            return np.asarray(inputs.is_whole | moved | (inputs.read_from < inputs.measured_to))
        if measure.rule is Rule.BY_MOMENT:
            return np.asarray(self.since(measure) < ABOVE_ALL)
        result: Flags = self.since(measure) < ABOVE_ALL
        result |= start_offsets(inputs.places, self.progress) != inputs.passed_before
        if measure.rule is Rule.BY_BLOCK:
            kept_groups = self.contributions.kept_groups
            result[kept_groups[GROUP_PLACE, self._are_final(kept_groups, self.contributions.kept_last)]] = True
        return result

    def view(self, measure: Measure) -> View:
        """The histories that the measure reads."""
        if measure.rule is Rule.BY_MOMENT:
            return self.inputs.by_moment(self._since_ms)
        return self.by_offset if _by_record_offset(measure) else self.from_record

    @property
    def progress(self) -> pa.Table:
        """PROGRESS rows as of this run."""
        return progress.rows(self.from_record)

    def final_below(self, measure: Measure) -> Ints:
        """The value of `measure.order` below which rows are final."""
        now = self.progress
        if measure.rule is Rule.BY_MOMENT:
            return self.inputs.places.values(now, "log_time_ms", null=BELOW_ALL, missing=BELOW_ALL) - OPEN_MS
        if measure.rule is Rule.BY_RECORD_OFFSET:
            return start_offsets(self.inputs.places, now)
        if measure.rule is Rule.BY_INTERVAL:
            return self.inputs.places.values(now, "since_log_offset", null=ABOVE_ALL, missing=ABOVE_ALL)
        return self.inputs.places.values(now, "read_from_log_offset", null=-1, missing=BELOW_ALL) + 1

    @cached_property
    def _since_ms(self) -> Ints:
        """From which moment on new records and headers can change rows; BELOW_ALL: all rows, ABOVE_ALL: none."""
        inputs, recent = self.inputs, self.inputs.recent
        new = recent.history.column("log_offset").to_numpy() > inputs.measured_to[recent.place]
        times = recent.history.column("log_time_ms").to_numpy()
        by_records = inputs.places.lowest(recent.place[new], times[new])
        earliest = np.minimum(by_records, inputs.new_headers_from_ms)
        since = np.where(earliest < ABOVE_ALL, minutes_of(earliest), ABOVE_ALL)
        is_late = since < inputs.progress_values("log_time_ms", BELOW_ALL) - OPEN_MS
        return np.where(inputs.is_whole | is_late, BELOW_ALL, since)

    @cached_property
    def _since_offset(self) -> Mapping[str, Ints]:
        """By table of a measure by record offset."""
        measures = (measure for measure in STAGED.values() if measure.rule is Rule.BY_RECORD_OFFSET)
        return {measure.table: self._not_across(measure) for measure in measures}

    def _not_across(self, measure: Measure) -> Ints:
        """The reach, moved down so that no row of the table lies across it; rows of several lives overlap."""
        inputs, columns = self.inputs, [*PLACE_KEY, "first_offset", "last_offset"]
        result, moved = inputs.reach, not inputs.is_whole.all()
        while moved and (result < ABOVE_ALL).any():
            before, rows = result, inputs.rows_from(measure.table, columns, result)
            result = not_across(before, rows, inputs.places)
            moved = bool((result < before).any())
        return result

    @property
    def contributions(self) -> Contributions:
        """The contributions to latency and attempts that are recomputed."""
        return self._read[0]

    @cached_property
    def from_record(self) -> View:
        """The histories from the record on that the progress of earlier runs names."""
        return self.inputs.from_record()

    @property
    def by_offset(self) -> View:
        """The histories from the lowest offset on that measures about record offsets recompute."""
        return self._read[1]

    @cached_property
    def _read(self) -> tuple[Contributions, View]:
        is_whole = self.inputs.is_whole | self._marked_otherwise()
        contributions = self._contributions(is_whole)
        if self.inputs.is_whole.all():
            return contributions, self.from_record
        by_offset = self.inputs.by_offset(self._lowest(contributions))
        unclear = self._unclear(by_offset) & ~is_whole
        if unclear.any():
            contributions = self._contributions(is_whole | unclear)
            by_offset = self.inputs.by_offset(self._lowest(contributions))
        return contributions, by_offset

    def _lowest(self, contributions: Contributions) -> Ints:
        lowest: Ints = np.minimum.reduce([contributions.floor, *self._since_offset.values()])
        return lowest

    def _contributions(self, is_whole: Flags) -> Contributions:
        """`is_whole`: places whose contributions are all recomputed."""
        inputs = self.inputs
        since = inputs.reach_of_open
        late = (since < inputs.passed_before) & (since > 0)
        since = np.where(late, since & -BLOCK_OFFSETS, since)
        since = np.where(is_whole, BELOW_ALL, since)
        if inputs.is_whole.all():
            none = groups_of(inputs, TABLES["gold.latency"].schema.empty_table())
            return Contributions(since=since, floor=since, groups=none, kept_groups=none, kept_last=none[GROUP_BLOCK])
        rows = inputs.rows_from("gold.latency", GROUP_COLUMNS, since)
        still = inputs.rows_from("gold.attempts", GROUP_COLUMNS, since)
        still = still.filter(pc.equal(still.column("outcome").cast(pa.string()), OPEN))
        rows = pa.concat_tables([rows, still.cast(rows.schema)])
        rows = rows.filter(pa.array(~inputs.base.stays(STAGED["latency"], rows)))
        groups = groups_of(inputs, rows)
        place, hour_ms = groups[GROUP_PLACE], groups[GROUP_HOUR]
        first, last = rows.column("first_offset").to_numpy(), rows.column("last_offset").to_numpy()
        grows = (hour_ms == NOT_KNOWN) | (hour_ms >= hour_of(inputs.progress_values("log_time_ms", 0))[place])
        grows &= (first | (BLOCK_OFFSETS - 1)) >= since[place]
        affected = are_among(groups, groups[:, (last >= since[place]) | grows])
        return Contributions(
            since=since,
            floor=np.minimum(since, inputs.places.lowest(place[affected], first[affected])),
            groups=groups[:, affected],
            kept_groups=groups[:, ~affected],
            kept_last=last[~affected],
        )

    def _unclear(self, view: View) -> Flags:
        """Places whose contributions need the whole history: a range has more offsets than a block, and is cut into
        blocks as a whole.
        """
        result = np.zeros(self.inputs.places.count, np.bool_)
        histories = view.histories()
        size = histories.ranges[:, RANGE_LAST] - histories.ranges[:, RANGE_FIRST]
        result[histories.place_of_range[size >= BLOCK_OFFSETS]] = True
        return result

    def _marked_otherwise(self) -> Flags:
        """Places whose completeness changed (each contribution has it), or whose new snapshot shows outcomes of missing
        records.
        """
        inputs = self.inputs
        result = np.zeros(inputs.places.count, np.bool_)
        if inputs.is_whole.all():
            return result
        histories = inputs.recent
        rows, at = histories.history, histories.place
        blind = codes_in(rows.column("completeness"), pa.array(BLIND)) >= 0
        snapshot = codes_in(rows.column("record_type"), pa.array(["snapshot"])) >= 0
        # The first record of a place that resumes was measured before, so the row above it does not count.
        shows = np.append(False, blind[:-1])[: len(at)]
        result[at[shows & snapshot & (rows.column("log_offset").to_numpy() > inputs.measured_to[at])]] = True
        newest = rows.take(pa.array(histories.newest_rows))
        differs: Flags = _marks(inputs, newest) != _marks(inputs, inputs.progress)
        return result | differs

    @cached_property
    def settled(self) -> Settled:
        """The recomputed settled ranges, cut into blocks."""
        contributions, places = self.contributions, self.inputs.places
        done = settled_of(self.by_offset)
        if self.inputs.is_whole.all():
            return done.in_blocks()
        at = places.of(done.places)
        done = done.from_offsets(contributions.floor[at]).in_blocks()
        settled, still = groups_of_ranges(done, at)
        new = done.last >= contributions.since[settled[GROUP_PLACE]]
        done = done.where(new | are_among(settled, contributions.groups))
        new = done.open_last >= contributions.since[still[GROUP_PLACE]]
        return done.where_open(new | are_among(still, contributions.groups))

    @cached_property
    def _group_ends(self) -> tuple[Ints, Ints]:
        """Groups of contributions, recomputed or kept, each once, and the highest offset of each."""
        settled, _ = groups_of_ranges(self.settled, self.inputs.places.of(self.settled.places))
        all_groups = np.concatenate([settled, self.contributions.kept_groups], axis=1)
        code, sample = numbered(*all_groups)
        last = np.full(len(sample), -1, np.int64)
        np.maximum.at(last, code, together([self.settled.last, self.contributions.kept_last]))
        return all_groups[:, sample], last

    def is_final(self, rows: pa.Table) -> Flags:
        """Whether each contribution, kept or recomputed, is final: whether its group is."""
        groups, (known_groups, known_last) = groups_of(self.inputs, rows), self._group_ends
        group_codes, theirs = codes_of(groups, known_groups)
        last = np.full(int(max(group_codes.max(initial=-1), theirs.max(initial=-1))) + 1, -1, np.int64)
        last[theirs] = known_last
        return self._are_final(groups, last[group_codes])

    def _are_final(self, groups: Ints, last: Ints) -> Flags:
        """Whether each group is final; `last`: the highest offset of each."""
        places, now = self.inputs.places, self.progress
        place, block, hour_ms, outcome = groups
        start = start_offsets(places, now)[place]
        hour = hour_of(places.values(now, "log_time_ms", null=0, missing=0))
        over = (hour_ms != NOT_KNOWN) & (hour_ms < hour[place])
        block_ends = ((block + 1) << BLOCK_BITS) - 1
        final: Flags = (last < start) & (over | (block_ends < start)) & (outcome != OUTCOMES.index(OPEN))
        return final


def _by_record_offset(measure: Measure) -> bool:
    return measure.rule in (Rule.BY_RECORD_OFFSET, Rule.BY_BLOCK)


def groups_of(inputs: LakeInputs, rows: pa.Table) -> Ints:
    """The group of each LATENCY_CONTRIBUTION or ATTEMPTS_CONTRIBUTION row."""
    block = rows.column("first_offset").to_numpy() >> BLOCK_BITS
    outcome = codes_in(rows.column("outcome"), pa.array(OUTCOMES))
    return np.stack([inputs.places.of(rows), block, ints(rows, "hour_ms", NOT_KNOWN), outcome])


def groups_of_ranges(done: Settled, at: Ints) -> tuple[Ints, Ints]:
    """The groups of settled ranges and of open ones; `at`: where the places of `done` stand among all."""
    settled = np.stack([at[done.place], done.first >> BLOCK_BITS, done.hour_ms, done.outcome])
    still = np.empty((4, len(done.open_place)), np.int64)
    still[GROUP_PLACE], still[GROUP_BLOCK] = at[done.open_place], done.open_first >> BLOCK_BITS
    still[GROUP_HOUR], still[GROUP_OUTCOME] = NOT_KNOWN, OUTCOMES.index(OPEN)
    return settled, still


def codes_of(*parts: Ints) -> list[Ints]:
    """For each part the number of each group, in one numbering."""
    code, _ = numbered(*np.concatenate(parts, axis=1))
    return np.split(code, np.cumsum([part.shape[1] for part in parts])[:-1])


def are_among(groups: Ints, other_groups: Ints) -> Flags:
    """Whether each group is among the others."""
    if other_groups.shape[1] == 0:
        return np.zeros(groups.shape[1], np.bool_)
    group_codes, theirs = codes_of(groups, other_groups)
    return np.isin(group_codes, theirs)


def _marks(inputs: LakeInputs, rows: pa.Table) -> np.ndarray:
    """The completeness and its reason, one entry a place."""
    result = np.full(inputs.places.count, "", np.object_)
    parts = [pc.fill_null(rows.column(name).cast(pa.string()), "") for name in MARK]
    result[inputs.places.of(rows)] = pc.binary_join_element_wise(*parts, " ").to_numpy(zero_copy_only=False)
    return result


def hour_of(time_ms: Ints) -> Ints:
    """The beginning of the hour of each time."""
    time_ms = np.maximum(time_ms, 0)
    return time_ms - time_ms % HOUR_MS
