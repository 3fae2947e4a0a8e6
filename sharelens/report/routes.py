"""Rows of a stream, handed to those that collect rows of some share partitions."""

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from sharelens.measures.ranges.places import Ints, Places
from state_model.columnar.keys import PLACE_KEY


class Routes:
    """Which share partitions each collector takes; a stream is read once for all of them."""

    def __init__(self) -> None:
        self._routes: list[tuple[pa.Table, Callable[[pa.Table], None]]] = []

    def add(self, places: pa.Table, take: Callable[[pa.Table], None]) -> None:
        """`take` gets the rows of these places (PLACE_KEY)."""
        if places.num_rows:
            self._routes.append((places.select(PLACE_KEY), take))

    def run(self, read: Callable[[Places], Iterator[tuple[Ints, pa.Table]]]) -> None:
        """Hands out the rows of all these places; `read` gives them in tables, with the place of each row."""
        if not self._routes:
            return
        every = pa.concat_tables([places for places, _ in self._routes]).group_by(PLACE_KEY).aggregate([])
        chosen = Places(keys=every)
        routes = [(np.isin(np.arange(chosen.count), chosen.of(places)), take) for places, take in self._routes]
        for numbers, rows in read(chosen):
            is_present = np.bincount(numbers, minlength=chosen.count) > 0
            for is_taken, take in routes:
                if is_taken[is_present].all():
                    take(rows)
                elif is_taken[is_present].any():
                    take(rows.filter(pa.array(is_taken[numbers])))
