"""Settings that a lake keeps: stored once, used by every later measure, in any order with runs."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs import publish
from jobs.errors import ClusterMismatchError
from jobs.lake_settings import stored
from jobs.upkeep.maintain import MaintainOptions, maintain
from sharelens.lake.lake import Lake
from sharelens.lake.scan import open_lake
from sharelens.lake.settings_rows import TABLE
from sharelens.measures.settings.observations import Observation
from sharelens.measures.settings.over_time import DEAD_LETTER_TOPIC
from state_model.topics import UNKNOWN_CLUSTER
from tests.depths import examples
from tests.lakes import CONTENT, assert_same, content, differences
from tests.logs.dead_letter_logs import letter_headers, write_letters
from tests.logs.state_logs import ORDERS_ID, START_MS, snapshot, update, write_log_directory
from tests.logs.user_topics import write_orders
from tests.once import made_once
from tests.processes.in_process import TO_MEASURES, make_lake
from tests.settings_in_files import broker_config, dead_letter_topics, end_offsets, group_configs

pytestmark = pytest.mark.slow

CHANGE_MS = START_MS + 100
STATE = [
    snapshot("g", at_ms=START_MS),
    snapshot("h", at_ms=START_MS + 1),
    update("g", batches=[(3, 4, 3, 2)], at_ms=START_MS + 10),
    update("h", batches=[(0, 2, 4, 2)], at_ms=START_MS + 15),
    update("g", batches=[(3, 4, 4, 2)], at_ms=START_MS + 20),
    update("g", batches=[(6, 7, 4, 2)], at_ms=CHANGE_MS + 10),
    update("h", batches=[(9, 9, 3, 3)], at_ms=CHANGE_MS + 20),
    update("h", batches=[(12, 12, 0, 1)], at_ms=CHANGE_MS + 120_000),
]
"""Groups g and h archive records of orders-0 before and after a change of their settings."""
ENDS = (START_MS + 12, CHANGE_MS, CHANGE_MS + 15)
"""Where a run may stop reading."""


def directory(folder: Path) -> Path:
    write_log_directory(folder, STATE)
    write_orders(folder)
    write_letters(folder, [(None, b"v", letter_headers(3))], topic="parked")
    return folder


@pytest.fixture
def logs() -> Path:
    """The log directory, to be read."""
    return made_once("settings/logs", directory)


@pytest.fixture
def plain(logs: Path, tmp_path: Path) -> Path:
    """A lake that knows no settings, to run on."""
    shared_lake = made_once("settings/plain", lambda lake: make_lake(lake, logs, stages=TO_MEASURES))
    return Path(shutil.copytree(shared_lake, tmp_path / "plain"))


@pytest.fixture
def limited(logs: Path, tmp_path: Path) -> Path:
    """A lake that knows a limit of group g, to run on."""

    def make(lake: Path) -> None:
        make_lake(lake, logs, observations=(group_configs(g=2),), stages=TO_MEASURES)

    return Path(shutil.copytree(made_once("settings/limited", make), tmp_path / "limited"))


def causes(lake: Path, group: str) -> list[tuple[int, str]]:
    rows = (
        open_lake(lake)
        .scan("gold.poison_record", ["group_id", "first_offset", "cause"])
        .sort_by("first_offset")
        .to_pylist()
    )
    return [(row["first_offset"], row["cause"]) for row in rows if row["group_id"] == group]


def runs_of(lake: Path, table: str, group: str) -> set[int]:
    rows = open_lake(lake).scan(table, ["group_id", "run_id"])
    return set(rows.filter(pc.field("group_id") == group).column("run_id").to_pylist())


def test_a_run_stores_settings_and_measures_with_them(logs: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    summary = make_lake(lake, logs, observations=(group_configs(g=2, h=3),), stages=TO_MEASURES)
    assert summary.settings == [{"kind": "group_configs", "from_ms": None}]
    assert causes(lake, "g") == [(3, "delivery_limit"), (6, "delivery_limit")]
    assert causes(lake, "h") == [(0, "rejected"), (9, "delivery_limit")]


def test_later_runs_measure_with_stored_settings(logs: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    make_lake(lake, logs, observations=(group_configs(g=2),), until_ms=ENDS[0], stages=TO_MEASURES)
    make_lake(lake, logs, stages=TO_MEASURES)
    assert causes(lake, "g") == [(3, "delivery_limit"), (6, "delivery_limit")]


def test_the_same_files_again_change_no_table(logs: Path, tmp_path: Path) -> None:
    lake, files = tmp_path / "lake", (group_configs(g=2), broker_config(4), end_offsets(orders=50))
    make_lake(lake, logs, observations=files)
    before = publish.current_versions(Lake(lake))
    assert make_lake(lake, logs, observations=files).settings == []
    assert publish.current_versions(Lake(lake)) == before


@pytest.mark.soak
def test_a_newer_file_that_says_the_same_adds_nothing(logs: Path, limited: Path) -> None:
    make_lake(limited, logs, observations=(group_configs(CHANGE_MS, g=2),), stages=TO_MEASURES)
    assert [observation.from_ms for observation in stored(Lake(limited), UNKNOWN_CLUSTER)] == [0]


@pytest.mark.soak
def test_a_change_counts_from_its_time_on(logs: Path, limited: Path) -> None:
    make_lake(limited, logs, observations=(group_configs(CHANGE_MS, g=5),), stages=TO_MEASURES)
    assert causes(limited, "g") == [(3, "delivery_limit"), (6, "rejected")]


def test_a_file_of_the_same_time_replaces_the_one_before(logs: Path, limited: Path) -> None:
    make_lake(limited, logs, observations=(group_configs(g=5),), stages=TO_MEASURES)
    assert causes(limited, "g") == [(3, "rejected"), (6, "rejected")]


def test_only_groups_with_changed_settings_are_measured_again(logs: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    make_lake(lake, logs, observations=(group_configs(g=2, h=2),), stages=TO_MEASURES)
    summary = make_lake(lake, logs, observations=(group_configs(g=2, h=3),), stages=TO_MEASURES)
    for table in ("gold.poison_record", "gold.life_event", "gold.progress", "gold.stall"):
        assert runs_of(lake, table, "g") <= {1}
        assert runs_of(lake, table, "h") <= {summary.run_id}
    assert causes(lake, "h") == [(0, "rejected"), (9, "delivery_limit")]


def test_a_dead_letter_topic_touches_dead_letters_alone(logs: Path, tmp_path: Path) -> None:
    lake, letters = tmp_path / "lake", dead_letter_topics("parked")
    make_lake(lake, logs, observations=(letters, group_configs(0, DEAD_LETTER_TOPIC, h="parked")), stages=TO_MEASURES)
    news = (group_configs(0, DEAD_LETTER_TOPIC, g="parked"),)
    summary = make_lake(lake, logs, observations=news, stages=TO_MEASURES)
    assert runs_of(lake, "gold.dlq_reconciliation", "g") == {summary.run_id}
    assert runs_of(lake, "gold.poison_record", "g") == {1}


@pytest.mark.soak
def test_letters_of_stored_topics_are_read_when_the_topics_appear(logs: Path, tmp_path: Path) -> None:
    lake, early = tmp_path / "lake", write_log_directory(tmp_path / "early", STATE)
    make_lake(lake, early, observations=(dead_letter_topics("parked"),), stages=TO_MEASURES)
    make_lake(lake, logs, stages=TO_MEASURES)
    rows = open_lake(lake).scan("gold.dlq_reconciliation").to_pylist()
    assert [row["dlq_topic"] for row in rows if row["status"] == "matched"] == ["parked"]


@pytest.mark.soak
def test_end_offsets_raise_the_lag_of_their_partition_alone(logs: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    make_lake(lake, logs, observations=(end_offsets(orders=50, other=9),), stages=TO_MEASURES)
    lag = open_lake(lake).scan("gold.lag", ["end_offset", "end_offset_source", "run_id"]).to_pylist()
    assert {(row["end_offset"], row["end_offset_source"]) for row in lag} == {(50, "end_offsets_file")}
    make_lake(lake, logs, observations=(end_offsets(1, orders=50, other=10),), stages=TO_MEASURES)
    assert open_lake(lake).scan("gold.lag", ["end_offset", "end_offset_source", "run_id"]).to_pylist() == lag
    make_lake(lake, logs, observations=(end_offsets(2, orders=39),), stages=TO_MEASURES)
    lower = open_lake(lake).scan("gold.lag", ["end_offset", "end_offset_source"]).to_pylist()
    assert {(row["end_offset"], row["end_offset_source"]) for row in lower} == {(40, "log_end")}


@pytest.mark.soak
def test_measure_alone_stores_settings(plain: Path) -> None:
    make_lake(plain, observations=(group_configs(g=2),), stages=("measure", "publish"))
    assert causes(plain, "g") == [(3, "delivery_limit"), (6, "delivery_limit")]


@pytest.mark.soak
def test_names_of_a_folder_are_stored_too(tmp_path: Path) -> None:
    lake, logs = tmp_path / "lake", write_log_directory(tmp_path / "logs", STATE)
    make_lake(lake, logs, stages=TO_MEASURES)
    make_lake(lake, topic_names={ORDERS_ID: "orders"}, stages=("measure", "publish"))
    assert set(open_lake(lake).scan("gold.poison_record", ["topic"]).column("topic").to_pylist()) == {"orders"}


@pytest.mark.soak
def test_measure_before_replay_leaves_no_record_out(logs: Path, tmp_path: Path) -> None:
    lake, files = tmp_path / "lake", (group_configs(g=2),)
    make_lake(lake, logs, until_ms=ENDS[0], stages=TO_MEASURES)
    make_lake(lake, logs, observations=files, stages=("ingest",))
    make_lake(lake, stages=("measure",))
    make_lake(lake, stages=("decode", "replay", "measure", "publish"))
    make_lake(tmp_path / "whole", logs, observations=files, stages=TO_MEASURES)
    assert_same(lake, tmp_path / "whole")


@pytest.mark.soak
def test_settings_of_a_lake_with_several_clusters_need_the_cluster(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    for cluster_id in ("one", "two"):
        logs = write_log_directory(tmp_path / cluster_id, STATE, cluster_id=cluster_id)
        make_lake(lake, logs, stages=TO_MEASURES)
    with pytest.raises(ClusterMismatchError, match="--settings: .* holds clusters one, two; say --cluster-id"):
        make_lake(lake, observations=(group_configs(g=2),), stages=("measure",))
    make_lake(lake, observations=(group_configs(g=2),), cluster_id="two", stages=("measure", "publish"))
    rows = open_lake(lake).scan("gold.poison_record").to_pylist()
    by_cluster = {
        (row["cluster_id"], row["cause"]) for row in rows if row["group_id"] == "g" and row["first_offset"] == 6
    }
    assert by_cluster == {("one", "unknown"), ("two", "delivery_limit")}


@pytest.mark.soak
def test_a_lake_without_the_table_is_read_and_gets_it_by_the_next_run(logs: Path, plain: Path, tmp_path: Path) -> None:
    intact_lake = Path(shutil.copytree(plain, tmp_path / "whole"))
    without_table(plain)
    assert open_lake(plain).scan(TABLE).num_rows == 0
    make_lake(plain, logs, observations=(group_configs(g=2),))
    make_lake(intact_lake, logs, observations=(group_configs(g=2),))
    assert_same(plain, intact_lake)


def without_table(lake: Path) -> None:
    """Takes bronze.setting out of a lake and its publication, as if a version before it had written the lake."""
    import deltalake
    import pyarrow as pa

    shutil.rmtree(lake / "bronze" / "setting")
    table = deltalake.DeltaTable(lake / "gold" / "publication")
    rows = pa.table(table.to_pyarrow_table())
    for row in (listed := rows.to_pylist()):
        row["tables"] = [entry for entry in row["tables"] if entry["table"] != TABLE]
    deltalake.write_deltalake(table, pa.Table.from_pylist(listed, schema=rows.schema), mode="overwrite")


FILES = st.one_of(
    st.builds(
        lambda at, g, h: group_configs(at, **{"g": g} | ({} if h is None else {"h": h})),
        st.sampled_from([0, CHANGE_MS, CHANGE_MS + 15]), st.integers(2, 4), st.none() | st.integers(2, 4),
    ),
    st.builds(broker_config, st.none() | st.integers(2, 4), st.sampled_from([0, CHANGE_MS])),
    st.builds(lambda at, topic: group_configs(at, DEAD_LETTER_TOPIC, g=topic), st.sampled_from([0, CHANGE_MS]),
              st.sampled_from(["parked", "lost"])),
    st.builds(lambda at, end: end_offsets(at, orders=end), st.sampled_from([1, 2]), st.sampled_from([20, 60])),
)  # fmt: skip


def begun_lake(logs: Path) -> Path:
    """The lake of a run over the beginning of the log, with a topic for dead letters stored; to be copied."""
    letters = dead_letter_topics("parked")
    return made_once(
        "settings/begun", lambda lake: make_lake(lake, logs, until_ms=START_MS + 2, observations=(letters,))
    )


@pytest.mark.soak
@examples("lake", shrink=False)
@given(
    steps=st.lists(FILES, min_size=1, max_size=4), ends=st.lists(st.sampled_from(ENDS), max_size=2, unique=True),
    order=st.randoms(use_true_random=False),
)  # fmt: skip
def test_any_order_of_runs_and_settings_is_one_run_with_the_final_settings(
    steps: Sequence[Observation], ends: Sequence[int], order: object, logs: Path
) -> None:
    with TemporaryDirectory() as folder:
        one_run_lake = Path(folder) / "whole"
        runs: list[int | None] = [*sorted(ends), None]
        parts = Lake(shutil.copytree(begun_lake(logs), Path(folder) / "parts"))
        files = list(steps)
        while runs or files:
            is_run = bool(runs) and (not files or order.random() < 0.5)  # type: ignore[attr-defined]
            if is_run:
                make_lake(parts, logs, until_ms=runs.pop(0))
            else:
                make_lake(parts, observations=(files.pop(0),), stages=("measure", "audit", "publish"))
        make_lake(one_run_lake, logs, observations=stored(parts, UNKNOWN_CLUSTER))
        names = [name for name in CONTENT if name != TABLE]
        assert not differences(content(parts.uri, names), content(one_run_lake, names))


@pytest.mark.soak
def test_rows_whose_history_retention_cut_keep_their_causes(tmp_path: Path) -> None:
    hour_ms, lake = 3_600_000, tmp_path / "lake"
    late_ms = START_MS + 10 * hour_ms
    story = [
        snapshot("g", at_ms=START_MS),
        update("g", batches=[(3, 4, 4, 2)], at_ms=START_MS + 20),
        snapshot("g", start=5, at_ms=late_ms),
        update("g", batches=[(7, 7, 4, 2)], at_ms=late_ms + 50),
        snapshot("g", start=8, epoch=1, at_ms=late_ms + 10 * hour_ms),
        update("g", batches=[(9, 9, 4, 2)], at_ms=late_ms + 11 * hour_ms),
    ]
    logs = write_log_directory(tmp_path / "logs", story)
    write_orders(logs)
    make_lake(lake, logs, observations=(group_configs(g=2),), stages=TO_MEASURES)
    assert {cause for _, cause in causes(lake, "g")} == {"delivery_limit"}
    before = causes(lake, "g")
    done = maintain(MaintainOptions(lake=Lake(lake), dry_run=False, retain={"history": 5 * hour_ms}))
    assert sum(table.dropped_rows for table in done.tables) > 0
    make_lake(lake, observations=(group_configs(g=5),), stages=("measure", "publish"))
    after = dict(causes(lake, "g"))
    assert after.keys() == dict(before).keys(), "no row is lost"
    assert after[9] == "rejected"
    assert after[3] == "delivery_limit"
