"""Sums above the rows of `poison` and `dlq`."""

import pyarrow as pa
import pytest

from sharelens.cli import main
from sharelens.output import number_column
from sharelens.questions.answers.digests import LINES, Digest, as_answer
from tests.datasets import dataset

SCHEMA = pa.schema(
    [
        ("group_id", pa.string()),
        ("cause", pa.string()),
        ("topic_id", pa.string()),
        ("partition", pa.int32()),
        ("first_offset", pa.int64()),
        ("last_offset", pa.int64()),
        ("at_ms", pa.int64()),
    ]
)


def added(*tables: list[tuple[object, ...]]) -> list[dict[str, object]]:
    digest = Digest(["group_id", "cause"])
    for rows in tables:
        table = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)
        digest.add(table, table.column("at_ms"))
    return digest.table().sort_by([("group_id", "ascending"), ("cause", "ascending")]).to_pylist()


def test_records_share_partitions_and_the_newest_time_are_of_all_tables():
    assert added(
        [("g", "rejected", "t", 0, 5, 9, 100), ("g", "rejected", "t", 1, 5, 5, 300), ("h", None, "t", 0, 1, 1, None)],
        [("g", "rejected", "t", 0, 20, 20, 200), ("g", "unknown", "u", 0, 0, 1, 50)],
    ) == [
        {"group_id": "g", "cause": "rejected", "records": 7, "partitions": 2, "last_ms": 300},
        {"group_id": "g", "cause": "unknown", "records": 2, "partitions": 1, "last_ms": 50},
        {"group_id": "h", "cause": None, "records": 1, "partitions": 1, "last_ms": None},
    ]


def test_a_digest_has_a_few_lines_and_counts_the_others():
    table = pa.table({"records": list(range(LINES + 5))})
    answer = as_answer(table, [number_column("RECORDS", "records")], [("records", "descending")])
    assert answer.table.column("records").to_pylist()[0] == LINES + 4
    assert (answer.table.num_rows, answer.row_count) == (LINES, LINES + 5)


@pytest.mark.slow
def test_poison_begins_with_sums_that_make_its_totals(capsys: pytest.CaptureFixture[str]):
    words = ["poison", "--log-dir", str(dataset("dlq") / "logs"), "--limit", "2"]
    assert main(words) == 0
    out = capsys.readouterr().out
    digest, _, rows = out.partition("\n\n")
    sums = [line.split() for line in digest.splitlines()]
    assert sums[0] == ["GROUP", "CAUSE", "RECORDS", "PARTITIONS", "LAST-OUTCOME"]
    totals = {cause: sum(int(line[2]) for line in sums[1:] if line[1] == cause) for cause in ("rejected", "unknown")}
    assert f"record offsets: rejected {totals['rejected']}, " in rows
    assert f"unknown {totals['unknown']}, " in rows
    assert rows.splitlines()[0].split()[:4] == ["GROUP", "TOPIC", "PARTITION", "OFFSET"]
    assert main([*words, "--output", "jsonl"]) == 0
    assert capsys.readouterr().out.count("\n") == 2
