"""Dead letters of the recorded logs: reconciled with the state log, against the topics and the clients' journals."""

import csv
import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sharelens.cli import main
from sharelens.lake.scan import open_lake
from tests.dataset_settings import given_settings, lines
from tests.datasets import dataset
from tests.logs.dead_letter_logs import letter_headers, write_letters
from tests.logs.state_logs import ORDERS_ID, snapshot, update, write_log_directory
from tests.logs.user_topics import write_orders
from tests.processes.in_process import make_lake, recorded_lake

Json = dict[str, Any]
Place = tuple[str, str, int, int]
NAMES = ("admin", "dlq", "timeouts", "transactions")
CANARY = b"canary-4f1d9c"


def ask(capsys: pytest.CaptureFixture[str], *words: str) -> list[Json]:
    assert main(["dlq", *words, "--output", "json"]) == 0
    rows: list[Json] = json.loads(capsys.readouterr().out)
    return rows


def logs(name: str) -> str:
    return str(dataset(name) / "logs")


def place(row: Json) -> Place:
    return row["group_id"], row["topic"], row["partition"], row["offset"]


def letters_in_topics(folder: Path) -> dict[Place, Json]:
    """The dead letters as a consumer read them, by the record they speak of."""
    letters = {}
    for line in lines(folder, "topics.jsonl"):
        headers = {header["key"].removeprefix("__dlq.errors."): header["utf8"] for header in line.get("headers", ())}
        if line["topic"].startswith("dlq.") and "offset" in headers:
            letters[headers["group"], headers["topic"], int(headers["partition"]), int(headers["offset"])] = line
    return letters


def test_every_dead_letter_has_its_archived_record_and_lies_where_it_is_said_to_lie(
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = dataset("dlq")
    rows = ask(capsys, "--log-dir", logs("dlq"), "--status", "matched")
    real = letters_in_topics(folder)
    assert {place(row) for row in rows} == set(real)
    assert len(rows) == len(real) == 201
    for row in rows:
        letter = real[place(row)]
        assert (row["dlq_topic"], row["dlq_partition"], row["dlq_offset"]) == (
            letter["topic"],
            letter["partition"],
            letter["offset"],
        )
        assert row["dead_lettered_ms"] == letter["timestamp"]
        assert row["value_size_bytes"] == (None if letter["value"] is None else len(letter["value"]))
        assert row["archiving_ms"] <= row["dead_lettered_ms"] + 1000
        assert row["dead_lettered_ms"] <= row["archived_ms"] + 1000
        assert (row["cause_source"], row["completeness"]) == ("dead_letter", "complete")


def test_causes_are_what_the_clients_did(capsys: pytest.CaptureFixture[str]) -> None:
    rejected = {
        (line["g"], line["topic"], line["p"], line["o"])
        for line in lines(dataset("dlq"), "journal.jsonl")
        if line.get("ack") == "REJECT"
    }
    rows = ask(capsys, "--log-dir", logs("dlq"), "--status", "matched")
    assert {place(row) for row in rows if row["cause"] == "rejected"} <= rejected
    assert not {place(row) for row in rows if row["cause"] == "delivery_limit"} & rejected


def test_a_group_whose_topic_takes_no_dead_letters_misses_all_of_its(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """gd-broken names dlq.disabled, which exists, and is not enabled: the broker archives and writes nothing."""
    words = ["--log-dir", logs("dlq"), "--group", "gd-broken"]
    assert {row["reason"] for row in ask(capsys, *words)} == {"no_dead_letter_topic_known"}
    rows = ask(capsys, *words, *given_settings(dataset("dlq"), tmp_path))
    assert {(row["status"], row["dlq_topic"]) for row in rows} == {("missing", "dlq.disabled")}
    given_up = {
        (line["g"], line["topic"], line["p"], line["o"])
        for line in lines(dataset("dlq"), "journal.jsonl")
        if line.get("ack") == "REJECT" and line["g"] == "gd-broken"
    }
    missing = {
        (row["group_id"], row["topic"], row["partition"], offset)
        for row in rows
        for offset in range(row["offset"], row["last_offset"] + 1)
    }
    assert given_up <= missing
    assert len(missing) == 69


def test_groups_without_a_topic_for_dead_letters_are_due_none(capsys: pytest.CaptureFixture[str]) -> None:
    rows = ask(capsys, "--log-dir", logs("dlq"))
    assert {row["group_id"] for row in rows} == {"gd-auto", "gd-broken", "gd-copy", "gd-meta"}
    for name in NAMES:
        if name != "dlq":
            assert ask(capsys, "--log-dir", logs(name)) == []


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", NAMES)
def test_lake_log_directory_and_gold_table_agree(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = recorded_lake(name)
    at_hand = ask(capsys, "--log-dir", logs(name))
    assert ask(capsys, "--lake", str(lake)) == at_hand
    settings = given_settings(dataset(name), tmp_path)
    assert ask(capsys, "--lake", str(lake), *settings) == ask(capsys, "--log-dir", logs(name), *settings)
    bursts = ask(capsys, "--log-dir", logs(name), "--bursts", "--gap", "5s")
    assert ask(capsys, "--lake", str(lake), "--bursts", "--gap", "5s") == bursts
    assert sum(row["dead_letters"] for row in bursts) == (201 if name == "dlq" else 0)
    gold = open_lake(lake).scan("gold.dlq_reconciliation").to_pylist()
    gold_rows = [{key: row[key] for key in at_hand[0]} for row in gold] if at_hand else gold
    assert sorted(map(repr, gold_rows)) == sorted(map(repr, at_hand))


def test_as_of_a_moment_only_what_was_there_by_then_counts(capsys: pytest.CaptureFixture[str]) -> None:
    every = ask(capsys, "--log-dir", logs("dlq"), "--status", "matched")
    moment = sorted(row["archived_ms"] for row in every)[100]
    then = ask(capsys, "--log-dir", logs("dlq"), "--as-of", str(moment), "--status", "matched")
    assert {place(row) for row in then} == {place(row) for row in every if row["dead_lettered_ms"] <= moment}
    assert all((row["archived_ms"] or 0) <= moment for row in then)


def test_the_plan_is_the_same_bytes_from_lake_and_log_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = recorded_lake("dlq")
    sources = {"a.csv": ["--log-dir", logs("dlq")], "b.csv": ["--lake", str(lake)]}
    for name, source in sources.items():
        assert main(["dlq", "plan", *source, "--out", str(tmp_path / name)]) == 0
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    content = json.loads(capsys.readouterr().out.splitlines()[0])
    digest = hashlib.sha256((tmp_path / "a.csv").read_bytes()).hexdigest()
    assert content["sha256"] == digest
    assert (tmp_path / "a.csv.sha256").read_text(encoding="ascii") == f"{digest}  a.csv\n"
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(row["group_id"], row["advice"], row["read_from"]) for row in rows if row["cause"] == "delivery_limit"} >= {
        ("gd-copy", "redrive", "dead_letter"),
        ("gd-meta", "redrive", "source"),
    }


def small_logs(folder: Path) -> Path:
    """Group g gave up orders-0 @ 3; its dead letter holds the canary, in its value and in a header of its own."""
    batches = [[(3, 3, 3, 1)], [(3, 3, 4, 1)]]
    write_log_directory(folder, [snapshot(), *(update(start=0, batches=update_batches) for update_batches in batches)])
    write_orders(folder)
    write_letters(folder, [(CANARY, b"value " + CANARY, [*letter_headers(3), ("note", CANARY)])])
    return folder


def holders(lake: Path) -> set[str]:
    """Tables with a file that holds the canary, in its bytes or in what they decode to."""
    letters = set()
    for path in lake.rglob("*"):
        if not path.is_file():
            continue
        has_canary = CANARY in path.read_bytes()
        if path.suffix == ".parquet":
            has_canary |= CANARY.decode() in repr(pq.read_table(path, partitioning=None).to_pylist())
        if has_canary:
            letters.add(".".join(path.relative_to(lake).parts[:2]))
    return letters


def test_a_dead_letter_s_payload_is_found_nowhere_unless_it_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = small_logs(tmp_path / "logs")
    make_lake(tmp_path / "hashed", directory)
    assert holders(tmp_path / "hashed") == set()
    make_lake(tmp_path / "kept", directory, keep_dlq_values=True)
    assert holders(tmp_path / "kept") == {"bronze.log_record"}
    for source in (["--lake", str(tmp_path / "kept")], ["--log-dir", str(directory)]):
        for form in ("text", "json", "jsonl", "csv", "yaml"):
            assert main(["dlq", *source, "--output", form]) == 0
        assert main(["dlq", "plan", *source, "--out", str(tmp_path / "plan.json"), "--force"]) == 0
        assert CANARY not in (tmp_path / "plan.json").read_bytes()
    out, err = capsys.readouterr()
    assert "matched" in out
    assert CANARY.decode() not in out + err
    kept_letters = open_lake(tmp_path / "kept").scan("silver.dlq_record")
    hashed = open_lake(tmp_path / "hashed").scan("silver.dlq_record")
    assert kept_letters.drop_columns(["run_id"]).equals(hashed.drop_columns(["run_id"]))
    assert kept_letters.column("value_sha256").to_pylist() == [hashlib.sha256(b"value " + CANARY).hexdigest()]
    assert pa.types.is_string(kept_letters.schema.field("value_sha256").type)
    assert open_lake(tmp_path / "kept").scan("gold.dlq_reconciliation").column("topic_id").to_pylist() == [ORDERS_ID]
