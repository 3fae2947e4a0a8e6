"""The parts of a report that come from the histories, in one pass over them.

Of most share partitions nothing stays but lags at moments. Of the few that are drawn the ranges stay that a map shows,
and of those with a trace the rows at which something about the record changes.
"""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.figures import counted
from sharelens.measures.latency.schemas import ACKNOWLEDGED, ARCHIVED
from sharelens.measures.ranges.places import Ints, Places
from sharelens.questions.answers.measured import Scope
from sharelens.questions.answers.share_partitions import Key, key_of, rows_of_keys
from sharelens.questions.latency import attempts_stream
from sharelens.questions.traces.events import SCALARS, TurningRows
from sharelens.report import lag_lines, maps, raster
from sharelens.report.lag_lines import LagReading, newest_of_groups
from sharelens.report.maps import Drawn, MapReading
from sharelens.report.routes import Routes
from sharelens.tables.parts import Part
from sharelens.tables.places import numbered_rows
from sharelens.tables.port import DELIVERIES, HISTORY, Tables
from sharelens.tables.reading import read
from sharelens.tables.where import Keys, Order, Where
from state_model.columnar.keys import LOG_ORDER, PLACE_KEY, SHARE_PARTITION_KEY
from state_model.columnar.schemas import DELIVERY_HISTORY, SHARE_PARTITION_HISTORY

MAPS = 3
HIGHEST_COUNT = 10
PROBED = 12
"""So many share partitions are looked up one by one for deliveries; of more than that, all keys are read."""
CODES = {ACKNOWLEDGED: raster.ACKNOWLEDGED, ARCHIVED: raster.ARCHIVED}
"""Cell codes of the outcomes that end a record's way."""
COLUMNS = tuple(dict.fromkeys([*SCALARS, *lag_lines.COLUMNS, *maps.HISTORY_COLUMNS]))


class Reading:
    """Takes the histories up to the cut: parts one after the other, or those of a lake.

    `written_ms`: log time of the newest record of each group; `lag`: what lag lines need.
    """

    def __init__(self, ranked: Sequence[Key], traced: Iterable[tuple[Key, int]], moments: Ints) -> None:
        """`ranked`: share partitions, worst first; `traced`: records with a trace; `moments`: epoch ms, ascending."""
        self.written_ms: dict[str, int] = {}
        self.lag = LagReading(ranked, moments)
        self._ranked = ranked
        self._rank = {key: place for place, key in enumerate(ranked)}
        self._from_ms, self._to_ms = int(moments[0]), int(moments[-1])
        self._maps: dict[int, MapReading] = {}
        self._traced: dict[Key, list[int]] = {}
        for key, offset in traced:
            self._traced.setdefault(key, []).append(offset)
        self._turning: list[TurningRows] = []
        self._deliveries = [DELIVERY_HISTORY.empty_table()]

    def take(self, part: Part) -> None:
        """Adds a part of the share partitions that are not misplaced."""
        for group, newest_ms in newest_of_groups(part.history).items():
            self.written_ms[group] = max(newest_ms, self.written_ms.get(group, 0))
        self.lag.add(rows_of_keys(part.history, self.lag.keys))
        self._draw(part)
        self.trace(part)

    def trace(self, part: Part) -> None:
        """Keeps what traces need of a part, misplaced or not."""
        for key, offsets in self._traced.items():
            history = rows_of_keys(part.history, [key])
            if history.num_rows:
                deliveries = rows_of_keys(part.deliveries, [key]).filter(_around(offsets))
                for turning in self._turning_rows(offsets, deliveries):
                    turning.add(history)

    def take_lake(self, scope: Scope, evidence: Tables) -> None:
        """Adds all share partitions, misplaced ones for traces, at the end of a lake's evidence.

        Rows and columns are read only of the share partitions of which something is shown.
        """
        self.written_ms = newest_of_groups(scope.places)
        all_places = pa.concat_tables([scope.places, scope.misplaced])
        history, deliveries = Routes(), Routes()
        history.add(rows_of_keys(scope.places, self.lag.keys), self.lag.add)
        for key, offsets in self._traced.items():
            places = rows_of_keys(all_places, [key])
            for turning in self._turning_rows(
                offsets, read(evidence, DELIVERIES, where=Where(places=places, offsets=tuple(offsets)))
            ):
                history.add(places, turning.add)
        for key in _drawn_keys(scope, evidence, self._ranked):
            reading = self._maps[self._rank[key]] = MapReading(key, self._from_ms, self._to_ms)
            places = rows_of_keys(scope.places, [key])
            history.add(places, reading.add_history)
            deliveries.add(places, reading.add_deliveries)
        history.run(lambda places: _numbered(evidence, HISTORY, COLUMNS, places))
        names = [*PLACE_KEY, *maps.DELIVERY_COLUMNS]
        deliveries.run(lambda places: _numbered(evidence, DELIVERIES, names, places))

    @property
    def traced(self) -> tuple[pa.Table, pa.Table]:
        """History rows (SCALARS) of the lives of traced records, and their DELIVERY_HISTORY rows."""
        empty = SHARE_PARTITION_HISTORY.empty_table().select(SCALARS)
        rows = pa.concat_tables([empty, *(turning.table() for turning in self._turning)])
        return rows.group_by(list(SCALARS)).aggregate([]).sort_by(LOG_ORDER), pa.concat_tables(self._deliveries)

    @property
    def drawn(self) -> Sequence[Drawn]:
        """The worst share partitions that have any delivery state, MAPS at most."""
        return [self._maps[rank].drawn() for rank in sorted(self._maps)]

    def _turning_rows(self, offsets: Sequence[int], deliveries: pa.Table) -> Sequence[TurningRows]:
        """A new collection for each traced record of a share partition; `deliveries`: its ranges around the records."""
        self._deliveries.append(deliveries)
        turning = [TurningRows(offset, deliveries.column("valid_from_log_offset")) for offset in offsets]
        self._turning += turning
        return turning

    def _draw(self, part: Part) -> None:
        keys = part.deliveries.select(SHARE_PARTITION_KEY).group_by(SHARE_PARTITION_KEY).aggregate([])
        with_deliveries = map(key_of, keys.to_pylist())
        for rank in sorted(self._rank[key] for key in with_deliveries if key in self._rank)[:MAPS]:
            if len(self._maps) == MAPS and rank > max(self._maps):
                break
            key = self._ranked[rank]
            reading = self._maps[rank] = MapReading(key, self._from_ms, self._to_ms)
            reading.add_history(rows_of_keys(part.history, [key]))
            reading.add_deliveries(rows_of_keys(part.deliveries, [key]))
            if len(self._maps) > MAPS:
                del self._maps[max(self._maps)]


def _around(offsets: Sequence[int]) -> pc.Expression:
    """The condition on ranges that cover one of some record offsets."""
    condition = pc.scalar(False)
    for offset in offsets:
        condition |= (pc.field("first_offset") <= offset) & (pc.field("last_offset") >= offset)
    return condition


def _numbered(evidence: Tables, table: str, columns: Sequence[str], places: Places) -> Iterator[tuple[Ints, pa.Table]]:
    """These columns, PLACE_KEY's among them, of the rows of some places, with the place of each; history in order.

    The scan reads keys that have few other places, because rows are matched with places here.
    """
    topics: dict[str, frozenset[int] | None] = {}
    for row in places.keys.to_pylist():
        topics[row["topic_id"]] = (topics.get(row["topic_id"]) or frozenset()) | {row["partition"]}
    keys = Keys(groups=frozenset(places.keys.column("group_id").to_pylist()), topics=topics)
    order = Order.LOG if table == HISTORY else Order.ANY
    for rows in evidence.scan(table, columns, Where(keys=keys), order):
        yield numbered_rows(places, rows)


def _has_deliveries(evidence: Tables, places: pa.Table) -> bool:
    """Whether any of some places has a row of delivery history."""
    return any(rows.num_rows for rows in evidence.scan(DELIVERIES, PLACE_KEY, Where(places=places)))


def _drawn_keys(scope: Scope, evidence: Tables, ranked: Sequence[Key]) -> Sequence[Key]:
    """The first of the ranked share partitions that have any delivery state, MAPS at most."""
    drawn: list[Key] = []
    for key in ranked[:PROBED]:
        if len(drawn) < MAPS and _has_deliveries(evidence, rows_of_keys(scope.places, [key])):
            drawn.append(key)
    remaining_keys = ranked[PROBED:]
    if len(drawn) == MAPS or not remaining_keys:
        return drawn
    places = Places(keys=rows_of_keys(scope.places, remaining_keys))
    numbers_seen: set[int] = set()
    for numbers, _ in _numbered(evidence, DELIVERIES, PLACE_KEY, places):
        numbers_seen.update(pc.unique(pa.array(numbers)).to_pylist())
    rows = places.keys.take(pa.array(sorted(numbers_seen), pa.int64()))
    with_deliveries = set(map(key_of, rows.to_pylist()))
    return [*drawn, *(key for key in remaining_keys if key in with_deliveries)][:MAPS]


def count_shown(count: int) -> int:
    """The delivery count as pictures show it, up to HIGHEST_COUNT."""
    return min(max(count, 0), HIGHEST_COUNT)


def outcomes_of(scope: Scope) -> dict[tuple[int, int], int]:
    """Settled offsets by (cell code, delivery count up to HIGHEST_COUNT), as `attempts` counts them."""
    sums: dict[tuple[int, int], int] = {}
    for rows in attempts_stream(scope):
        counts = counted("settled_records", rows).group_by(["outcome", "delivery_count"])
        for row in counts.aggregate([("records", "sum")]).to_pylist():
            cell = CODES[row["outcome"]], count_shown(row["delivery_count"])
            sums[cell] = sums.get(cell, 0) + row["records_sum"]
    return sums
