"""Share partitions by the small tables of a lake are those that the histories have."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sharelens.lake.scan import open_lake
from sharelens.tables.lakes.tables import HISTORY, LakeTables
from sharelens.tables.opening import open_cut
from sharelens.tables.places import COUNTED, counted_places
from sharelens.tables.reading import read_places
from sharelens.tables.where import Keys
from state_model.columnar.keys import PLACE_KEY
from tests.depths import in_soak
from tests.logs.state_logs import snapshot, tombstone, update, write_log_directory
from tests.processes.in_process import make_lake, recorded_lake

pytestmark = pytest.mark.slow


def place_rows(places: pa.Table) -> list[dict[str, object]]:
    """What an answer depends on: the place, its newest record, whether it ever had a start offset."""
    started = pc.fill_null(pc.greater_equal(places.column("start_offset"), 0), False)
    order = [(name, "ascending") for name in PLACE_KEY]
    rows = places.select([*PLACE_KEY, "log_time_ms"]).append_column("started", started).sort_by(order).to_pylist()
    return list(rows)


def counted(evidence: LakeTables) -> pa.Table:
    is_of_log = pc.field("log_topic_id") == evidence.rows.log_topic_id
    return counted_places(evidence.rows.stream(HISTORY, COUNTED, is_of_log))


@pytest.mark.parametrize("name", ["upgrade", *in_soak("admin", "edge", "pruned", "v44")])
def test_they_are_those_of_a_recorded_log(name: str) -> None:
    evidence = open_cut(open_lake(str(recorded_lake(name))), None)
    places = read_places(evidence, Keys())
    assert place_rows(places) == place_rows(counted(evidence))
    group = places.column("group_id")[0].as_py()
    of_group = read_places(evidence, Keys(groups=frozenset({group})))
    assert place_rows(of_group) == [row for row in place_rows(places) if row["group_id"] == group]


def test_a_deleted_one_and_one_that_was_reset_had_a_start_offset(tmp_path: Path) -> None:
    records = [
        snapshot("deleted", start=-1),
        update("deleted", start=7),
        tombstone("deleted"),
        snapshot("reset", start=-1),
        update("reset", start=7),
        snapshot("reset", start=-1, snapshot_epoch=1),
        snapshot("never", start=-1),
    ]
    logs = write_log_directory(tmp_path / "logs", records)
    make_lake(tmp_path / "lake", logs)
    evidence = open_cut(open_lake(str(tmp_path / "lake")), None)
    places = read_places(evidence, Keys())
    assert {(row["group_id"], row["started"]) for row in place_rows(places)} == {
        ("deleted", True),
        ("reset", True),
        ("never", False),
    }
    assert place_rows(places) == place_rows(counted(evidence))
