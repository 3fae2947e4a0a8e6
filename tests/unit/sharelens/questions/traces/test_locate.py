"""Where user records lie, by key and by time; what they hold stays where it is."""

import json
from pathlib import Path

import pytest

from sharelens.cli import main
from sharelens.kafka_log.codecs import GZIP, ZSTD
from tests.logs.batch_files import broken, write_batches
from tests.logs.state_logs import ORDERS_ID, START_MS, snapshot, update, write_log_directory
from tests.logs.user_topics import write_orders
from tests.processes.in_process import make_lake
from tools.log_writer.writer import encode_batch, record_columns, write_meta

CANARY = b"the-canary-of-this-test"
EVERY_MS = 10


def batch(first: int, keys: list[bytes | None], *, codec: int = 0, value: bytes = CANARY) -> bytes:
    """A batch of records with these keys, one every 10 ms."""
    stamps = [START_MS + EVERY_MS * (first + number) for number in range(len(keys))]
    return encode_batch(record_columns(keys, [value] * len(keys), stamps), base_offset=first, codec=codec)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A topic of two partitions without any share state beside it."""
    folder = tmp_path / "logs"
    write_batches(
        folder / "orders-0", [batch(0, [b"a", b"b", None]), batch(3, [b"a", b"c"], codec=ZSTD)], topic_id=ORDERS_ID
    )
    write_batches(folder / "orders-1", [batch(5, [b"\xff\x00", b"a"], codec=GZIP)], topic_id=ORDERS_ID)
    write_meta(folder, cluster_id="a-cluster", node_id=1)
    return folder


Capture = pytest.CaptureFixture[str]


def ask(capsys: Capture, *words: str) -> tuple[int, list[tuple[int, int, int]], str]:
    """Exit code; (partition, offset, time since START_MS) of each row; what stood on stderr."""
    code = main(["locate", *words, "--output", "json"])
    out, err = capsys.readouterr()
    assert CANARY.decode() not in out + err
    rows = json.loads(out) if out else []
    return code, [(row["partition"], row["offset"], row["timestamp_ms"] - START_MS) for row in rows], err


def test_a_key_is_found_in_every_partition_and_codec(logs: Path, capsys: Capture) -> None:
    source = ["--log-dir", str(logs), "--topic", "orders"]
    assert ask(capsys, *source, "--key", "a")[:2] == (0, [(0, 0, 0), (0, 3, 30), (1, 6, 60)])
    assert ask(capsys, *source, "--key-hex", "ff00")[1] == [(1, 5, 50)]
    assert ask(capsys, *source, "--key-base64", "/wA=")[1] == [(1, 5, 50)]
    assert ask(capsys, *source, "--key", "nobody")[:2] == (0, [])


def test_a_topic_goes_by_its_id_too_and_partitions_narrow_it(logs: Path, capsys: Capture) -> None:
    assert ask(capsys, "--log-dir", str(logs), "--topic", ORDERS_ID, "--key", "a", "--partition", "1")[1] == [
        (1, 6, 60)
    ]
    assert ask(capsys, "--log-dir", str(logs), "--topic", "orders:1", "--key", "a")[1] == [(1, 6, 60)]


def test_a_time_finds_the_records_near_it(logs: Path, capsys: Capture) -> None:
    source = ["--log-dir", str(logs), "--topic", "orders", "--around", str(START_MS + 40)]
    assert ask(capsys, *source, "--within", "10ms")[1] == [(0, 3, 30), (0, 4, 40), (1, 5, 50)]
    assert len(ask(capsys, *source)[1]) == 7


def test_from_and_to_bound_the_records_own_time(logs: Path, capsys: Capture) -> None:
    source = ["--log-dir", str(logs), "--topic", "orders", "--key", "a"]
    assert ask(capsys, *source, "--from", str(START_MS + 1), "--to", str(START_MS + 60))[1] == [(0, 3, 30)]


def test_the_search_ends_at_the_limit_and_says_so(logs: Path, capsys: Capture) -> None:
    code, rows, err = ask(capsys, "--log-dir", str(logs), "--topic", "orders", "--key", "a", "--limit", "2")
    assert (code, rows) == (0, [(0, 0, 0), (0, 3, 30)])
    assert "stopped at 2 places" in err
    assert "stopped" not in ask(capsys, "--log-dir", str(logs), "--topic", "orders", "--key", "a", "--limit", "3")[2]


def test_a_broken_batch_is_named_and_marks_its_partition(tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "logs"
    write_batches(
        folder / "orders-0", [batch(0, [b"a"]), broken(batch(1, [b"a"])), batch(2, [b"a"])], topic_id=ORDERS_ID
    )
    words = ["locate", "--log-dir", str(folder), "--topic", "orders", "--key", "a", "--output", "json"]
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert [(row["offset"], row["completeness"]) for row in json.loads(out)] == [(0, "incomplete"), (2, "incomplete")]
    assert "not readable: crc_mismatch 1" in err
    assert main([*words, "--require-complete"]) == 1
    capsys.readouterr()


@pytest.mark.slow
def test_a_lake_has_ranges_for_a_time_and_nothing_for_a_key(tmp_path: Path, capsys: Capture) -> None:
    logs = write_log_directory(
        tmp_path / "logs", [snapshot(start=0), update(start=0, batches=[(0, 4, 2, 1)])], cluster_id="a-cluster"
    )
    (logs / "orders-0" / "00000000000000000000.log").unlink()
    write_orders(logs)
    make_lake(tmp_path / "lake", logs)
    source = ["--lake", str(tmp_path / "lake"), "--topic", "orders"]
    assert main(["locate", *source, "--around", str(START_MS + 7), "--within", "3ms", "--output", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["offset"], row["last_offset"], row["found_in"]) for row in rows] == [
        (0, 4, "batch_header"),
        (5, 9, "batch_header"),
        (10, 14, "batch_header"),
    ]
    code, rows, err = ask(capsys, *source, "--key", "a")
    assert (code, rows) == (2, [])
    assert "give --log-dir DIR" in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--topic", "orders"], "give one of --key"),
        (["--topic", "orders", "--key", "a", "--around", "1"], "give one of --key"),
        (["--topic", "orders", "--key", "a", "--key-hex", "61"], "exclude each other"),
        (["--topic", "orders", "--key-hex", "6"], "hexadecimal"),
        (["--topic", "orders", "--key-base64", "%"], "no Base64"),
        (["--topic", "orders", "--key", "a", "--within", "1s"], "--within goes with --around"),
        (["--topic", "orders", "--around", "5", "--from", "1"], "--around excludes --from and --to"),
        (["--topic", "orders", "--key", "a", "--from", "5", "--to", "1"], "--to lies before --from"),
        (["--topic", "nothing\x1b[2J", "--key", "a"], "no topic nothing\\x1b[2J"),
        (["--topic", "orders:7", "--key", "a"], "partitions there: 0, 1"),
        (["--topic", "__share_group_state", "--key", "a"], "has no user records"),
    ],
)
def test_what_can_not_be_meant_is_refused_in_one_line(
    words: list[str], message: str, logs: Path, capsys: Capture
) -> None:
    code, rows, err = ask(capsys, "--log-dir", str(logs), *words)
    assert (code, rows, len(err.splitlines())) == (2, [], 1)
    assert message in err
