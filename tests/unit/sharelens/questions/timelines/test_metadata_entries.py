"""Changes of the metadata log as entries: for each group the settings, leaders and replicas that it depends on."""

from pathlib import Path
from typing import Any

import pytest

from sharelens.cli import main
from sharelens.questions.timelines.metadata_entries import metadata_entries
from sharelens.source.request import Source
from sharelens.tables.opening import open_evidence
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_group_records, read_places
from sharelens.tables.where import Keys
from state_model.metadata.schemas import CONFIG, PARTITION
from tests.logs.cluster_logs import group_entries, metadata, state, write_orders
from tests.logs.group_files import OFFSETS_TOPIC_ID, write_group_partition
from tests.logs.metadata_logs import group_setting, value_of, write_metadata
from tests.logs.state_logs import ORDERS_ID, START_MS, STATE_TOPIC_ID, write_state_partition
from tests.processes.in_process import make_lake

TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
GROUPS = ("mail", "search")
LIMIT = "share.delivery.count.limit"


def partition(topic_id: str, leader: int, isr: tuple[int, ...], epoch: int) -> bytes:
    tree = {
        "partition_id": 0, "topic_id": topic_id, "replicas": (1, 2, 3), "isr": isr, "removing_replicas": (),
        "adding_replicas": (), "leader": leader, "leader_epoch": epoch, "partition_epoch": epoch,
        "leader_recovery_state": 0,
    }  # fmt: skip
    return value_of(PARTITION, tree)


def setting(resource: int, name: str, key: str, value: str | None) -> bytes:
    return value_of(CONFIG, {"resource_type": resource, "resource_name": name, "name": key, "value": value})


STORY = [
    partition(STATE_TOPIC_ID, 1, (1, 2, 3), 0),
    partition(OFFSETS_TOPIC_ID, 2, (1, 2, 3), 0),
    group_setting("mail", LIMIT, "5"),
    group_setting("mail", LIMIT, "7"),
    group_setting("mail", LIMIT, None),
    group_setting("nobody", LIMIT, "3"),
    setting(TOPIC_RESOURCE, "orders", "retention.ms", "1000"),
    setting(TOPIC_RESOURCE, "bills", "retention.ms", "1000"),
    setting(BROKER_RESOURCE, "", "log.retention.ms", "10"),
    partition(ORDERS_ID, 2, (1,), 1),
    partition(STATE_TOPIC_ID, 1, (1,), 0),
    partition(OFFSETS_TOPIC_ID, 3, (1, 2, 3), 1),
]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("metadata") / "logs"
    write_state_partition(folder, state(GROUPS))
    write_group_partition(folder, group_entries(GROUPS))
    write_orders(folder)
    story = [(START_MS + 1000 * number, value) for number, value in enumerate(STORY, 1)]
    write_metadata(folder, sorted([*metadata(), *story], key=lambda pair: pair[0]))
    return folder


def entries_of(evidence: Tables) -> list[dict[str, Any]]:
    groups = read_group_records(evidence, frozenset(GROUPS))
    return list(metadata_entries(evidence, read_places(evidence, Keys(groups=frozenset(GROUPS))), groups))


def test_each_group_has_the_changes_that_it_depends_on(logs: Path) -> None:
    with open_evidence(Source(log_dirs=(str(logs),), takes_group_log=True)) as evidence:
        entries = entries_of(evidence)
    texts = {group: [entry["text"] for entry in entries if entry["group_id"] == group] for group in GROUPS}
    of_every_group = [
        "__consumer_offsets-0: broker 2 to 3, leader epoch 1",
        "__share_group_state-0: [1, 2, 3] to [1]",
        "all brokers: log.retention.ms unset to 10",
        "broker 1 to 2, leader epoch 1",
        "topic orders: retention.ms unset to 1000",
    ]
    assert sorted(texts["search"]) == of_every_group
    of_mail = [f"{LIMIT} {words}" for words in ("5 to 7", "7 to unset", "unset to 5")]
    assert sorted(texts["mail"]) == sorted([*of_every_group, *of_mail])


def test_an_entry_has_the_time_and_the_record_that_proves_it(logs: Path) -> None:
    with open_evidence(Source(log_dirs=(str(logs),), takes_group_log=True)) as evidence:
        entries = entries_of(evidence)
    proofs = {
        (entry["event"], entry["log_topic"], (entry["at_ms"] - START_MS) // 1000 - entry["log_offset"])
        for entry in entries
    }
    before = len([pair for pair in metadata() if pair[0] <= START_MS])
    assert {proof[:2] for proof in proofs} == {
        (event, "__cluster_metadata") for event in ("setting_changed", "leader_changed", "in_sync_replicas_changed")
    }
    assert {proof[2] for proof in proofs} == {1 - before}
    assert {entry["partition"] for entry in entries if entry["topic_id"] == ORDERS_ID} == {0, None}


@pytest.mark.slow
def test_a_lake_has_the_same_entries(logs: Path, tmp_path: Path) -> None:
    with open_evidence(Source(log_dirs=(str(logs),), takes_group_log=True)) as evidence:
        of_logs = entries_of(evidence)
    make_lake(tmp_path / "lake", logs)
    with open_evidence(Source(lake=str(tmp_path / "lake"))) as evidence:
        of_lake = entries_of(evidence)
    assert sorted(map(repr, of_lake)) == sorted(map(repr, of_logs))


def printed_by(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert main([*words]) == 0
    return capsys.readouterr().out


@pytest.mark.slow
def test_answers_name_the_brokers_that_lead(logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = str(tmp_path / "lake")
    make_lake(Path(lake), logs)
    coordinator = "coordinator: broker {}, the leader of __consumer_offsets-0"
    describe = ["describe", "--group", "mail"]
    for source in (["--log-dir", str(logs)], ["--lake", lake]):
        assert coordinator.format(3) in printed_by(capsys, *describe, "--state", *source)
        earlier = printed_by(capsys, *describe, "--state", *source, "--as-of", str(START_MS + 3000))
        assert coordinator.format(2) in earlier
    assert coordinator.format(3) in printed_by(capsys, *describe, "--lake", lake)
    assert "--state names it where there is a metadata log" in printed_by(capsys, *describe, "--log-dir", str(logs))
    state = printed_by(capsys, "state", "--lake", lake, "--group", "mail")
    assert "leader: broker 2, which leads orders-0" in state
    assert "share coordinator: broker 1, which leads __share_group_state-0" in state


def test_without_a_metadata_log_there_is_none(tmp_path: Path) -> None:
    write_state_partition(tmp_path, state(GROUPS))
    write_group_partition(tmp_path, group_entries(GROUPS))
    with open_evidence(Source(log_dirs=(str(tmp_path),), takes_group_log=True)) as evidence:
        assert entries_of(evidence) == []
