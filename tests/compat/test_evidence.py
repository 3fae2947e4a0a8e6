"""Evidence of recorded incidents: the same bytes from a lake and from copies in any order, and no tampering unseen."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sharelens.cli import main
from sharelens.evidence.as_of import LogPrefix
from sharelens.source.request import Source
from sharelens.tables.logs.tables import open_log_tables
from sharelens.tables.reading import read_states
from sharelens.tables.where import Keys
from state_model.columnar.replay import replay_records
from state_model.columnar.schemas import SHARE_RECORD
from tests.datasets import FEW, dataset, kinds_first
from tests.once import made_once
from tests.processes.in_process import make_lake, recorded_lake

BOOKS = ("manifest.json", "manifest.sha256")
WITHOUT_STATE = {"streams"}


def files(folder: Path) -> dict[str, bytes]:
    """Every content file below a folder of evidence."""
    contents = {
        str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }
    return {path: content for path, content in contents.items() if path not in BOOKS}


def rows_of(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, object]]:
    assert main([*words, "--output", "json"]) == 0
    return list(json.loads(capsys.readouterr().out))


def window(name: str, logs: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The words that name a group of a scenario and the middle of its time."""
    records = rows_of(capsys, "records", "--log-dir", str(logs))
    groups = sorted({str(row["group_id"]) for row in records})
    group = max(groups, key=lambda member: sum(row["group_id"] == member for row in records))
    stamps = sorted(int(str(row["timestamp_ms"])) for row in records if row["group_id"] == group)
    begin, end = stamps[len(stamps) // 4], stamps[3 * len(stamps) // 4] + 1
    return ["--group", group, "--from", str(begin), "--to", str(end), "--case", f"INC {name}"]


def make(out: Path, *words: str) -> dict[str, bytes]:
    assert main(["evidence", *words, "--out", str(out)]) == 0
    return files(out)


def straight(name: str, words: list[str]) -> Path:
    """The folder of evidence from a scenario's log directory, for its window."""
    command = [*words, "--log-dir", str(dataset(name) / "logs")]
    return made_once(f"evidence/{name}", lambda folder: make(folder / "out", *command)) / "out"


def in_parts(logs: Path, folder: Path) -> Sequence[Path]:
    """Two copies of a log directory; the second lacks the user topics and __consumer_offsets."""
    whole_copy = Path(shutil.copytree(logs, folder / "zz-whole"))
    part = Path(
        shutil.copytree(
            logs,
            folder / "aa-part",
            ignore=lambda at, names: (
                [n for n in names if n[0] != "_" or n.startswith("__c")] if Path(at) == logs else []
            ),
        )
    )
    for checkpoint in logs.glob("*checkpoint"):
        shutil.copy(checkpoint, part / checkpoint.name)
    return whole_copy, part


@pytest.mark.parametrize("name", kinds_first(FEW, but=WITHOUT_STATE))
def test_a_lake_and_its_log_directory_give_the_same_bytes(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = dataset(name) / "logs"
    words = window(name, logs, capsys)
    first = files(straight(name, words))
    assert len(first) > 50
    lake = recorded_lake(name)
    assert make(tmp_path / "two", *words, "--lake", str(lake)) == first


@pytest.mark.soak
@pytest.mark.parametrize("name", ["crash", pytest.param("edge", marks=pytest.mark.soak)])
def test_copies_in_any_order_give_the_same_bytes(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs = dataset(name) / "logs"
    words = window(name, logs, capsys)
    first = files(straight(name, words))
    assert main(["verify", str(straight(name, words)), "--log-dir", str(logs)]) == 0
    whole_copy, part = in_parts(logs, tmp_path)
    for number, order in enumerate(([whole_copy, part], [part, whole_copy])):
        options = [word for place in order for word in ("--log-dir", str(place))]
        assert make(tmp_path / f"copies-{number}", *words, *options) == first
    make_lake(tmp_path / "united", part, whole_copy)
    assert make(tmp_path / "three", *words, "--lake", str(tmp_path / "united")) == first


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ["dlq", "transactions", "timeouts"])
def test_the_state_before_and_the_records_of_the_window_give_the_state_after(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = dataset(name) / "logs"
    words = window(name, logs, capsys)
    tables = straight(name, words) / "tables"
    evidence = open_log_tables(Source(log_dirs=(str(logs),)))
    keys = Keys(groups=frozenset({words[1]}))
    seed = read_states(evidence, keys, LogPrefix(as_of_ms=int(words[3]) - 1)).drop_columns(["misplaced"])
    records = pq.read_table(tables / "record.parquet").drop_columns(["key", "value", "undecodable"])
    assert records.num_rows > 10
    for column, value in (("record_bytes", pa.scalar(0, pa.int32())), ("below_log_start", pa.scalar(False))):
        records = records.append_column(column, pa.repeat(value, records.num_rows))
    state = replay_records(records.select(SHARE_RECORD.names).cast(SHARE_RECORD), seed=seed).state
    after = pq.read_table(tables / "state_after.parquet")
    assert summary(state) == summary(after)
    assert summary(seed) == summary(pq.read_table(tables / "state_before.parquet")) != summary(after)


def summary(states: pa.Table) -> list[tuple[object, ...]]:
    """What a state says, apart from where its batches come from."""
    names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
    scalars = ("group_id", "topic_id", "partition", "start_offset", "delivery_complete_count", "snapshot_epoch")
    return sorted(
        (*(row[field] for field in scalars), str([[batch[field] for field in names] for batch in row["state_batches"]]))
        for row in states.to_pylist()
    )
