"""What other logs list and the state log lacks: each share partition by its state partition, in lakes and logs."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.groups.initialized import SHARE_PARTITION, initialized_share_partitions
from sharelens.lake.scan import open_lake
from sharelens.parameters.filters import parse_key_filter
from sharelens.questions.state import state
from sharelens.source.request import CutChoice, Source
from sharelens.tables.cover import StatePartitionCover
from sharelens.tables.logs.tables import open_log_tables
from sharelens.tables.missing import (
    ABSENT,
    HELD_BACK,
    NO_FOLDER,
    NO_STATE,
    OTHER_BROKER,
    SAMPLED,
    UNKNOWN_PLACE,
    UNREADABLE,
    Key,
    MissingEvidence,
    StateTopic,
    missing_evidence,
)
from sharelens.tables.opening import open_cut
from state_model.columnar.values import Loss
from state_model.java import partition_for
from state_model.metadata.schemas import PARTITION
from tests.datasets import KINDS, dataset
from tests.logs.group_logs import group_log, topics
from tests.logs.metadata_logs import topic, value_of, write_metadata
from tests.processes.in_process import TO_STATE, make_lake, recorded_lake

KEYS: list[Key] = [(f"g-{number % 3}", "T", number) for number in range(12)]
COUNT = 4


def table_of(keys: list[Key]) -> pa.Table:
    rows = [dict(zip(SHARE_PARTITION.names, key, strict=True)) for key in keys]
    return pa.Table.from_pylist(rows, schema=SHARE_PARTITION)


def places_of(keys: list[Key], count: int = COUNT) -> pa.Table:
    numbers = [partition_for(*key, count) for key in keys]
    return table_of(keys).append_column("state_partition", pa.array(numbers, pa.int32()))


def cover_of(number: int, held_back: int = 0, losses: tuple[Loss, ...] = ()) -> StatePartitionCover:
    return StatePartitionCover(
        log_topic_id="t", state_partition=number, first_offset=0, end_offset_exclusive=9, log_start_offset=0,
        first_ms=1, last_ms=2, held_back=held_back, losses=losses,
    )  # fmt: skip


def of_logs(*folders: Path) -> MissingEvidence:
    return open_log_tables(Source(log_dirs=tuple(map(str, folders)), needs_state_log=False)).missing


def of_lake(lake: Path) -> MissingEvidence:
    return open_cut(open_lake(lake), None).missing


@given(count=st.integers(1, 60), folders=st.sets(st.integers(0, 59)), gone=st.sets(st.sampled_from(KEYS), max_size=12))
def test_each_initialized_share_partition_has_state_or_a_reason(count: int, folders: set[int], gone: set[Key]) -> None:
    present_folders = frozenset(number for number in folders if number < count)
    with_state = [key for key in KEYS if key not in gone and partition_for(*key, count) in present_folders]
    all_brokers = dict.fromkeys(range(count), frozenset({1}))
    topic_here = StateTopic(folders=present_folders, replicas=all_brokers, nodes=frozenset({1}))
    missing = missing_evidence(table_of(KEYS), places_of(with_state, count), (), topic_here)
    assert missing.initialized == len(KEYS)
    assert missing.states.count == sum(missing.reasons.values()) == sum(missing.by_group.values())
    assert missing.states.count == len(KEYS) - len(with_state)
    assert len(missing.states.items) == min(SAMPLED, missing.states.count)
    for lost in missing.states.items:
        assert lost.state_partition == partition_for(*lost[:3], count)
        assert lost.reason == (NO_STATE if lost.state_partition in present_folders else NO_FOLDER)
    assert missing.state_partitions.count == count - len(present_folders)
    assert missing.absent == sum(partition_for(*key, count) not in present_folders for key in KEYS)


@given(placed=st.sets(st.sampled_from(KEYS), min_size=1), folders=st.sets(st.integers(0, COUNT - 1)))
def test_without_metadata_no_share_partition_is_placed_wrongly(placed: set[Key], folders: set[int]) -> None:
    with_state = sorted(placed)
    present_folders = frozenset({*folders, *(partition_for(*key, COUNT) for key in with_state)})
    missing = missing_evidence(table_of(KEYS), places_of(with_state), (), StateTopic(folders=present_folders))
    assert missing.state_partition_count in (None, COUNT)
    for lost in missing.states.items:
        number = partition_for(*lost[:3], COUNT)
        assert lost.state_partition in (None, number)
        assert (lost.reason == NO_FOLDER and number not in present_folders) or lost.reason in (
            UNKNOWN_PLACE,
            NO_STATE,
        )


@given(removed=st.sets(st.sampled_from(range(COUNT))))
def test_a_copy_of_fewer_folders_lacks_no_less(removed: set[int]) -> None:
    def lacking(gone: set[int]) -> MissingEvidence:
        present_folders = frozenset(range(COUNT)) - gone
        with_state = [key for key in KEYS if partition_for(*key, COUNT) in present_folders]
        return missing_evidence(table_of(KEYS), places_of(with_state), (), StateTopic(folders=present_folders))

    complete, part = lacking(set()), lacking(removed)
    assert (complete.states.count, complete.lacks_state_log) == (0, False)
    assert part.states.count == sum(partition_for(*key, COUNT) in removed for key in KEYS)
    assert part.lacks_state_log == (len(removed) == COUNT)
    assert set(part.reasons) <= ABSENT


def test_nothing_is_missing_where_no_group_log_was_read() -> None:
    missing = missing_evidence(None, places_of([]), (), StateTopic(folders=frozenset()))
    assert (missing.initialized, missing.states.count, missing.lacks_state_log) == (None, 0, False)


def test_a_state_partition_that_is_here_says_why_it_has_no_state() -> None:
    key = KEYS[0]
    number = partition_for(*key, COUNT)
    all_here = StateTopic(folders=frozenset(range(COUNT)))

    def reason(part: StatePartitionCover) -> str:
        missing = missing_evidence(table_of(KEYS), places_of(KEYS[1:]), [part], all_here)
        return missing.states.items[0].reason

    of_another = Loss(first_offset=3, last_offset=3, reason="quarantined", group_id="h", topic_id="T", partition=0)
    of_key = Loss(first_offset=3, last_offset=3, reason="quarantined", group_id=key[0], topic_id=key[1], partition=0)
    assert reason(cover_of(number)) == NO_STATE
    assert reason(cover_of(number, held_back=5)) == HELD_BACK
    assert reason(cover_of(number, losses=(of_another,))) == NO_STATE
    assert reason(cover_of(number, losses=(of_key,))) == UNREADABLE
    assert reason(cover_of(number, losses=(Loss(first_offset=3, last_offset=4, reason="gap"),))) == UNREADABLE


def test_partitions_that_other_brokers_have_are_not_missing_in_this_ones_copy() -> None:
    replicas = {number: frozenset({number % 2}) for number in range(COUNT)}
    topic_here = StateTopic(folders=frozenset({0, 2}), replicas=replicas, nodes=frozenset({0}))
    with_state = [key for key in KEYS if partition_for(*key, COUNT) % 2 == 0]
    missing = missing_evidence(table_of(KEYS), places_of(with_state), (), topic_here)
    assert (missing.state_partitions.count, missing.state_partition_count) == (0, COUNT)
    assert missing.reasons == {OTHER_BROKER: len(KEYS) - len(with_state)}


def test_groups_without_any_state_are_named() -> None:
    with_state = [key for key in KEYS if key[0] != "g-1"]
    missing = missing_evidence(table_of(KEYS), places_of(with_state), (), StateTopic(folders=frozenset(range(COUNT))))
    assert (missing.groups.items, missing.by_group) == (("g-1",), {"g-1": 4})


@pytest.mark.parametrize(
    ("entries", "initialized"),
    [
        ([(15, None, topics([0, 1]))], [0, 1]),
        ([(15, None, topics([0])), (15, None, topics([0], initializing=[1]))], [0]),
        ([(15, None, topics([0])), (15, None, None)], []),
        ([(15, None, topics([0])), (11, None, {"epoch": 1}), (11, None, None)], []),
        ([(11, None, None), (15, None, topics([2]))], [2]),
    ],
)
def test_the_newest_list_of_a_group_counts(entries: list[tuple[int, None, None]], initialized: list[int]) -> None:
    rows = initialized_share_partitions(group_log(*entries))
    assert rows.to_pylist() == [{"group_id": "g", "topic_id": "T", "partition": number} for number in initialized]


def test_a_list_of_an_unknown_version_changes_nothing() -> None:
    records = group_log((15, None, topics([0])), (15, None, topics([0, 1])), undecoded={1})
    assert initialized_share_partitions(records).column("partition").to_pylist() == [0]


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_whole_copies_of_brokers_lack_nothing(name: str) -> None:
    missing = of_logs(dataset(name) / "logs")
    assert missing.initialized
    assert (missing.states.count, missing.state_partitions.count, missing.has_state_log) == (0, 0, True)


@pytest.fixture(scope="module")
def partial_copies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Copies of the log of `basic`, which has four state partitions: without one of them, and without all."""
    root = tmp_path_factory.mktemp("partial")
    for name, gone in (("without-1", ["__share_group_state-1"]), ("without", ["__share_group_state-*"])):
        shutil.copytree(dataset("basic") / "logs", root / name)
        for pattern in gone:
            for folder in (root / name).glob(pattern):
                shutil.rmtree(folder)
    return {name: root / name for name in ("without-1", "without")}


@pytest.mark.slow
def test_a_lake_lacks_what_its_logs_lack(partial_copies: dict[str, Path], tmp_path: Path) -> None:
    for name, folder in partial_copies.items():
        make_lake(tmp_path / name, folder, stages=TO_STATE)
        logs, lake = of_logs(folder), of_lake(tmp_path / name)
        assert lake == logs
        assert (logs.initialized, logs.lacks_state_log) == (9, name == "without")
    without_1 = of_logs(partial_copies["without-1"])
    assert (without_1.states.count, without_1.reasons) == (2, {NO_FOLDER: 2})
    assert without_1.state_partitions.items == (1,)


@pytest.mark.slow
def test_large_state_logs_that_nobody_read_are_probed(
    partial_copies: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sharelens.tables.logs.missing.PROBE_ABOVE_BYTES", 0)
    assert of_logs(dataset("basic") / "logs").states.count == 0
    tables = open_log_tables(Source(log_dirs=(str(partial_copies["without-1"]),)))
    assert tables.missing.reasons == {NO_FOLDER: 2}
    assert all(log.reading is None for log in tables.origin.logs)


@pytest.mark.slow
def test_answers_over_a_part_of_the_state_log_say_that_sums_are_lower_bounds(partial_copies: dict[str, Path]) -> None:
    tables = open_log_tables(Source(log_dirs=(str(partial_copies["without-1"]),)))
    for groups, count in (((), 2), (("g-explicit",), 1), (("g-implicit",), 1)):
        (line,) = state(tables, parse_key_filter(groups, [], []), CutChoice()).warnings
        assert line.startswith(f"{count} initialized share partition")
        assert "sums over share partitions are lower bounds; copy __share_group_state-1" in line


@pytest.mark.slow
def test_a_whole_lake_lacks_nothing() -> None:
    missing = of_lake(recorded_lake("dlq"))
    assert (missing.initialized, missing.states.count, missing.has_state_log) == (15, 0, True)


@pytest.mark.slow
def test_the_metadata_log_says_which_state_partitions_the_broker_has(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(dataset("basic") / "logs", logs)
    shutil.rmtree(logs / "__share_group_state-1")
    state_topic_id = (logs / "__share_group_state-0" / "partition.metadata").read_text().split()[-1]
    replicas = {0: (7, 8), 1: (8, 9), 2: (7, 9), 3: (7, 8), 4: (7, 8)}
    records = [topic("__share_group_state", state_topic_id)]
    for number, brokers in replicas.items():
        tree = {
            "partition_id": number, "topic_id": state_topic_id, "replicas": brokers, "isr": brokers,
            "removing_replicas": (), "adding_replicas": (), "leader": brokers[0], "leader_epoch": 0,
            "partition_epoch": 0,
        }  # fmt: skip
        records.append(value_of(PARTITION, tree))
    write_metadata(logs, [(1_700_000_000_000 + number, record) for number, record in enumerate(records)])
    (logs / "meta.properties").write_text("version=1\nnode.id=7\n", encoding="ascii")
    missing = of_logs(logs)
    assert missing.state_partition_count == len(replicas)
    assert missing.state_partitions.items == (4,)  # 1 is on brokers 8 and 9
