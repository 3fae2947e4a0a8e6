"""Rows of state partitions that do not hold their share partition's state, because another one does."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.questions.evidence import KEY, Cut, Evidence, Keys
from state_model.columnar.placement import is_ambiguous

WHERE = (*KEY, "state_partition")


def place_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """The share partition and the state partition of a row."""
    return tuple(row[name] for name in WHERE)


def misplaced_places(evidence: Evidence, keys: Keys, history: pa.Table) -> pa.Table:
    """The places (WHERE) of `history` that do not hold their share partition's state: another state partition does.

    That of a share partition without any state is where its newest record lies.
    """
    places = history.select([*WHERE, "log_time_ms"]).group_by(list(WHERE)).aggregate([("log_time_ms", "max")])
    if not is_ambiguous(places):
        return places.slice(0, 0)
    found = evidence.states(keys, Cut())
    shown = set(map(place_of, found.filter(pc.invert(found.column("misplaced"))).to_pylist()))
    newest_last = [("log_time_ms_max", "ascending"), ("state_partition", "ascending")]
    holds = {place_of(row)[:-1]: place_of(row) for row in places.sort_by(newest_last).to_pylist()}
    holds |= {place[:-1]: place for place in shown}
    return places.filter(pa.array([place_of(row) not in holds.values() for row in places.to_pylist()], pa.bool_()))
