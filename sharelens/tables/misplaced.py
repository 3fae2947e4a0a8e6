"""Which state partition holds a share partition's state, where several have records of it."""

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.as_of import WHOLE_LOG
from sharelens.evidence.conditions import filter_rows
from sharelens.evidence.placement import is_ambiguous, misplaced_places_of, placed
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_states
from sharelens.tables.where import Keys
from state_model.columnar.keys import PLACE_KEY


def place_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """The share partition and the state partition of a row."""
    return tuple(row[name] for name in PLACE_KEY)


def placed_states(read_states: Callable[[Keys], pa.Table], keys: Keys) -> pa.Table:
    """PLACED_STATE rows of `keys`; `read_states` gives SHARE_PARTITION_STATE rows.

    Where a share partition has several rows, the rows of all share partitions decide which one is its state.
    """
    states = read_states(keys)
    if keys == Keys() or not is_ambiguous(states):
        return placed(states)
    return filter_rows(placed(read_states(Keys())), keys.expression())


def misplaced_places(evidence: Tables, keys: Keys, history: pa.Table) -> pa.Table:
    """The places (PLACE_KEY) of `history` that do not hold their share partition's state: another state partition does.

    The state of a share partition that is deleted lies where its newest record lies.
    """
    places = history.select([*PLACE_KEY, "log_time_ms"]).group_by(PLACE_KEY).aggregate([("log_time_ms", "max")])
    if not is_ambiguous(places):
        return places.slice(0, 0)
    states = read_states(evidence, keys, WHOLE_LOG)
    return misplaced_places_of(places, states.filter(pc.invert(states.column("misplaced"))))
