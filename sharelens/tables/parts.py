"""Both histories in bounded parts of whole share partitions: the order in which measures read them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import pyarrow as pa

from sharelens.measures.ranges.parts import stretches
from sharelens.tables.limits import WORKERS
from sharelens.tables.places import PLACED
from state_model.columnar.keys import SHARE_PARTITION_KEY
from state_model.columnar.schemas import DELIVERY_HISTORY, SHARE_PARTITION_HISTORY
from state_model.threads import map_in_threads, stream_in_threads

PART_ORDER = [(name, "ascending") for name in ("state_partition", *SHARE_PARTITION_KEY)]
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """SHARE_PARTITION_HISTORY and DELIVERY_HISTORY rows of some places (PLACED), up to the cut.

    Their text may be dictionary-encoded, with one dictionary for all rows.

    The first in (state_partition, log_offset) order, the others in any order; what ended after the cut is open.
    """

    places: pa.Table
    history: pa.Table
    deliveries: pa.Table


NO_PART = Part(
    places=PLACED.empty_table(),
    history=SHARE_PARTITION_HISTORY.empty_table(),
    deliveries=DELIVERY_HISTORY.empty_table(),
)


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The histories of some places, at least one part. A part is read when it is iterated over, a single one only once.

    `places`: the places of each part; `read`: reads the part of some places.
    """

    places: Sequence[pa.Table]
    read: Callable[[pa.Table], Part]

    def __iter__(self) -> Iterator[Part]:
        return map(self._part, self.places)

    def each(self, work: Callable[[Part], Result]) -> list[Result]:
        """What `work` makes of each part, in their order.

        WORKERS parts are read and worked on at the same time, so `work` must change nothing that another call reads.
        """
        return map_in_threads(lambda places: work(self._part(places)), self.places, WORKERS)

    def stream(self, work: Callable[[Part], Result]) -> Iterator[Result]:
        """As `each`, part after part: no more than WORKERS results wait to be taken."""
        return stream_in_threads(lambda places: work(self._part(places)), self.places, WORKERS)

    def _part(self, places: pa.Table) -> Part:
        return self._single if len(self.places) == 1 else self.read(places)

    @cached_property
    def _single(self) -> Part:
        return self.read(self.places[0])


def parts_of(places: pa.Table, part_records: int, read: Callable[[pa.Table], Part]) -> Parts:
    """The parts of places (PLACED), by state partition and share partition, of about `part_records` records each.

    A share partition with more records is a part of its own, so memory is bounded by the longest share partition. A
    state partition with fewer is in one part, so its records are chosen as a whole.
    """
    ordered = places.sort_by(PART_ORDER)
    counts, logs = (ordered.column(name).to_numpy() for name in ("records", "state_partition"))
    return Parts(places=list(stretches(ordered, counts, part_records, logs)) or [ordered], read=read)
