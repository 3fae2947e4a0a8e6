"""The metadata log in a lake: read once, without secrets, and with the histories that log directories give."""

import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from sharelens.cli import main
from sharelens.evidence.metadata_events import MetadataHistory
from sharelens.evidence.metadata_reading import read_metadata
from sharelens.kafka_log.layout import scan_log_directory
from sharelens.lake.lake import Lake
from sharelens.lake.metadata_log import read_history, stored_history
from sharelens.lake.scan import open_lake
from sharelens.measures.settings.over_time import DELIVERY_COUNT_LIMIT
from sharelens.tables.lakes.clusters import choose_cluster
from state_model.metadata.schemas import PARTITION, PARTITION_CHANGE
from tests.datasets import dataset
from tests.depths import in_soak
from tests.lakes import content, differences
from tests.logs.file_contents import contents_below
from tests.logs.metadata_logs import group_setting, random_records, topic, value_of, write_metadata
from tests.logs.state_logs import ORDERS_ID, START_MS, snapshot, update, write_log_directory
from tests.logs.user_topics import write_orders
from tests.processes.in_process import TO_BRONZE, TO_MEASURES, make_lake
from tests.settings_in_files import group_configs

pytestmark = pytest.mark.slow

FOLDER, FIRST, SECOND = "__cluster_metadata-0", "00000000000000000000", "00000000000000000091"
SECRET = b"Kst0re-Secret"
HISTORIES = ("silver.metadata_record", "gold.configuration_history", "gold.topic_history")
MAX_INT = (1 << 31) - 1
TOPIC_IDS = ("ot2ELlJ2QmSYXs6by5iwOw", "Yi6PIrkTTGCdh3-3-jMktg")


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A copy of the controller's log directory that a test may change."""
    return Path(shutil.copytree(dataset("metadata") / "node1", tmp_path / "node1"))


def remove(folder: Path, *names: str) -> None:
    for name in names:
        for path in (folder / FOLDER).glob(name):
            path.unlink()


def of_logs(*places: Path) -> MetadataHistory:
    history = read_metadata([scan_log_directory(str(place)) for place in places], max_bytes=1 << 24)
    assert history is not None
    return history


def of_lake(lake: Path) -> MetadataHistory:
    """By all records of the lake."""
    history = stored_history(Lake(lake), choose_cluster(open_lake(lake), None))
    assert history is not None
    return history


def values_of(history: MetadataHistory) -> dict[str, Any]:
    """What a history says, but for digests, which a lake does not have."""
    rows = []
    for row in history.validities:
        hidden = row.content.get("hidden")
        size = hidden["length"] if isinstance(hidden, dict) else None
        content_fields = {name: value for name, value in row.content.items() if name != "hidden"} | {"hidden": size}
        rows.append((row.key, content_fields, row.begin, row.end, row.began_earlier, history.completeness(row)))
    ends = (history.first_ms, history.has_beginning, history.end_offset, history.committed_end)
    return {"rows": rows, "ends": ends, "problems": history.problems}


def plain(history: dict[str, Any]) -> list[Any]:
    """The rows but for hidden values: in a lake each snapshot begins a row of them."""
    return [row for row in history["rows"] if row[1]["hidden"] is None]


def extents(lake: Path) -> list[dict[str, Any]]:
    rows = open_lake(lake).scan("bronze.ingest_extent").filter(pc.field("content") == "metadata_record")
    return sorted(rows.to_pylist(), key=lambda row: row["run_id"])


def rows_of(lake: Path, table: str) -> list[dict[str, Any]]:
    return list(open_lake(lake).scan(table).to_pylist())


@pytest.mark.parametrize("nodes", [("node1", "node2"), *in_soak(("node1",), ("node2",))])
def test_lake_has_the_history_of_the_log_directories(nodes: tuple[str, ...], tmp_path: Path) -> None:
    places = [dataset("metadata") / name for name in nodes]
    make_lake(tmp_path / "lake", *places, stages=TO_BRONZE)
    history = of_lake(tmp_path / "lake")
    assert values_of(history) == values_of(of_logs(*places))
    cut = open_lake(tmp_path / "lake")
    for_questions = read_history(cut, choose_cluster(cut, None))
    assert for_questions is not None
    but_partitions = [row for row in values_of(history)["rows"] if row[0][0] != "partition"]
    assert values_of(for_questions) == values_of(history) | {"rows": but_partitions}


@pytest.mark.parametrize(
    "lost",
    [
        (f"{FIRST}.log", "*050-*.checkpoint"),
        (f"{FIRST}.log", "*.checkpoint"),
        (f"{FIRST}.log", f"{SECOND}.log"),
        (f"{SECOND}.log",),
    ],
    ids=["cleaned", "without beginning", "snapshots alone", "snapshot beyond the log"],
)
def test_snapshots_fill_the_gaps_of_a_lake(lost: tuple[str, ...], node: Path, tmp_path: Path) -> None:
    remove(node, *lost)
    make_lake(tmp_path / "lake", node)
    ours, theirs = values_of(of_lake(tmp_path / "lake")), values_of(of_logs(node))
    assert plain(ours) == plain(theirs)
    assert ours | {"rows": 0} == theirs | {"rows": 0}
    assert make_lake(tmp_path / "lake", node).run_id is None


@pytest.mark.soak
def test_offsets_are_read_once_and_runs_add_up_to_one(node: Path, tmp_path: Path) -> None:
    early = Path(shutil.copytree(node, tmp_path / "early"))
    remove(early, f"{SECOND}.*", "*099-*.checkpoint", "*142-*.checkpoint")
    step, one_run_lake = tmp_path / "step", tmp_path / "whole"
    make_lake(step, early)
    half = values_of(of_lake(step))
    assert half == values_of(of_logs(early))
    make_lake(step, node)
    assert make_lake(step, node).run_id is None
    make_lake(one_run_lake, node)
    assert [(row["from_offset"], row["end_offset_exclusive"]) for row in extents(step)] == [(0, 91), (91, 183)]
    assert not differences(content(step, HISTORIES), content(one_run_lake, HISTORIES))
    assert values_of(of_lake(step)) == values_of(of_logs(node)) != half
    rows = open_lake(step).scan("gold.topic_history", ["topic_id", "run_id"])
    runs = rows.group_by("topic_id").aggregate([("run_id", "min"), ("run_id", "max")])
    assert runs.column("run_id_min").equals(runs.column("run_id_max"))
    assert len(set(runs.column("run_id_min").to_pylist())) == 2


def test_a_tail_without_voters_is_read_again_when_the_log_grows_or_was_cut(tmp_path: Path) -> None:
    records = [(START_MS + number, topic(f"t{number}", name)) for number, name in enumerate(TOPIC_IDS)]
    logs, lake = tmp_path / "logs", tmp_path / "lake"
    for count in (1, 2, 1):
        shutil.rmtree(logs, ignore_errors=True)
        make_lake(lake, write_metadata(logs, records[:count]))
        assert values_of(of_lake(lake)) == values_of(of_logs(logs))
        assert make_lake(lake, logs).run_id is None
    assert {row["uncommitted"] for row in rows_of(lake, "silver.metadata_record")} == {True}
    assert {row["from_offset"] for row in extents(lake)} == {0}


def test_planted_password_is_nowhere_in_a_lake(node: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    planted = [
        (START_MS, group_setting("g", "plugin.password", SECRET.decode() + "-planted")),
        (START_MS, bytes([1, 4, 0]) + SECRET),
        (START_MS, SECRET),
    ]
    odd = write_metadata(tmp_path / "odd", planted)
    lake = tmp_path / "lake"
    summary = make_lake(lake, odd)
    assert summary.quarantined == 2
    other = tmp_path / "other"
    make_lake(other, node)
    assert main(["configurations", "--lake", str(lake)]) == 0
    assert main(["configurations", "--lake", str(other), "--output", "json"]) == 0
    assert main(["status", "--lake", str(lake)]) == 0
    out, err = capsys.readouterr()
    assert "hidden:" in out
    pieces = [*contents_below(lake), *contents_below(other), out.encode(), err.encode()]
    assert len(pieces) > 50
    assert not any(SECRET in piece for piece in pieces)
    of_lake_rows = rows_of(other, "silver.metadata_record")
    assert {row["value_json"] for row in of_lake_rows if row["record_name"] == "USER_SCRAM_CREDENTIAL_RECORD"} <= {None}


@pytest.mark.parametrize("seed", [0, 1, *in_soak(2, 3, 4, 5)])
def test_random_damage_gives_the_history_of_the_log_and_no_secret(node: Path, tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    files = sorted(path for path in (node / FOLDER).iterdir() if path.suffix in (".log", ".checkpoint"))
    for path in dice.sample(files, 2):
        data = bytearray(path.read_bytes())
        for _ in range(dice.randrange(1, 8)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        path.write_bytes(bytes(data[: dice.randrange(len(data) // 2, len(data) + 1)]))
    make_lake(tmp_path / "lake", node)
    ours, theirs = values_of(of_lake(tmp_path / "lake")), values_of(of_logs(node))
    assert plain(ours) == plain(theirs)
    assert ours["ends"] == theirs["ends"]
    assert not any(SECRET in piece for piece in contents_below(tmp_path / "lake"))


def test_random_content_gives_the_history_of_the_log(tmp_path: Path) -> None:
    records = random_records(dataset("metadata") / "node1", 2000)
    bump = {"partition_id": 0, "topic_id": TOPIC_IDS[0], "leader": 1}
    empty_lists = dict.fromkeys(("replicas", "isr", "removing_replicas", "adding_replicas", "directories"), ())
    epochs = {"leader_epoch": MAX_INT, "partition_epoch": MAX_INT, "leader_recovery_state": 0}
    records += [(9000, value_of(PARTITION, bump | empty_lists | epochs)), (9001, value_of(PARTITION_CHANGE, bump))]
    logs = write_metadata(tmp_path / "random", records)
    make_lake(tmp_path / "lake", logs, stages=TO_BRONZE)
    ours, theirs = values_of(of_lake(tmp_path / "lake")), values_of(of_logs(logs))
    assert plain(ours) == plain(theirs)
    assert ours["problems"] == theirs["problems"]
    assert {row["leader_epoch"] for row in rows_of(tmp_path / "lake", "gold.topic_history")} >= {MAX_INT, -MAX_INT - 1}


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Group g archives records of orders-0 at 10 ms and 60 ms."""
    state = [
        snapshot("g", at_ms=START_MS),
        update("g", batches=[(3, 4, 3, 2)], at_ms=START_MS + 5),
        update("g", batches=[(3, 4, 4, 2)], at_ms=START_MS + 10),
        update("g", batches=[(6, 7, 4, 2)], at_ms=START_MS + 60),
    ]
    write_orders(write_log_directory(tmp_path / "logs", state))
    return tmp_path / "logs"


LIMITS = [
    (START_MS - 9, group_setting("g", DELIVERY_COUNT_LIMIT, "2")),
    (START_MS + 50, group_setting("g", DELIVERY_COUNT_LIMIT, "3")),
]


def causes(lake: Path) -> dict[int, str]:
    return {row["first_offset"]: row["cause"] for row in rows_of(lake, "gold.poison_record")}


@pytest.mark.soak
def test_measures_use_the_setting_that_was_in_force(logs: Path, tmp_path: Path) -> None:
    step, one_run_lake, metadata = tmp_path / "step", tmp_path / "whole", tmp_path / "metadata"
    make_lake(step, logs, stages=TO_MEASURES)
    assert causes(step) == {3: "unknown", 6: "unknown"}
    make_lake(step, write_metadata(metadata, LIMITS[:1]), stages=TO_MEASURES)
    assert causes(step) == {3: "delivery_limit", 6: "delivery_limit"}
    make_lake(step, write_metadata(metadata, LIMITS))
    assert causes(step) == {3: "delivery_limit", 6: "rejected"}
    assert make_lake(step, metadata).run_id is None
    make_lake(one_run_lake, logs, metadata, stages=TO_MEASURES)
    assert causes(one_run_lake) == causes(step)


def test_setting_that_never_was_committed_is_taken_back(logs: Path, tmp_path: Path) -> None:
    lake, metadata = tmp_path / "lake", tmp_path / "metadata"
    make_lake(lake, logs, write_metadata(metadata, LIMITS), stages=TO_MEASURES)
    shutil.rmtree(metadata)
    make_lake(lake, write_metadata(metadata, LIMITS[:1]), stages=TO_MEASURES)
    assert causes(lake) == {3: "delivery_limit", 6: "delivery_limit"}


def test_files_count_before_the_metadata_log(logs: Path, tmp_path: Path) -> None:
    lake, metadata = tmp_path / "lake", write_metadata(tmp_path / "metadata", LIMITS)
    make_lake(lake, logs, metadata, observations=(group_configs(g=3),), stages=TO_MEASURES)
    assert causes(lake) == {3: "rejected", 6: "rejected"}
    longer_metadata = write_metadata(tmp_path / "metadata", [*LIMITS, (START_MS + 70, group_setting("g", "x", "y"))])
    make_lake(lake, longer_metadata, stages=TO_MEASURES)
    assert causes(lake) == {3: "rejected", 6: "rejected"}


def test_names_come_from_the_metadata_log_where_no_folder_has_them(logs: Path, tmp_path: Path) -> None:
    shutil.rmtree(logs / "orders-0")
    named = [(START_MS, topic("renamed", ORDERS_ID))]
    make_lake(tmp_path / "lake", logs, write_metadata(tmp_path / "metadata", named), stages=TO_MEASURES)
    assert {row["topic"] for row in rows_of(tmp_path / "lake", "gold.poison_record")} == {"renamed"}
