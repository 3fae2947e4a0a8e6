"""Which groups and share partitions a report shows first."""

from typing import Any

import pyarrow as pa

from sharelens.findings.finding import ERROR, WARNING, Finding
from sharelens.measures.schemas import LAG
from sharelens.report.ranking import BEHIND, CLOSED, group_ranking, share_partition_ranking
from state_model.columnar.keys import SHARE_PARTITION_KEY


def rows(schema: pa.Schema, *partial: dict[str, Any]) -> pa.Table:
    """Rows of which only the columns that the ranking reads have values."""
    nullable = pa.schema([field.with_nullable(True) for field in schema])
    return pa.Table.from_pylist(list(partial), schema=nullable)


def key(group: str, partition: int = 0) -> dict[str, Any]:
    return {"group_id": group, "topic_id": "t", "partition": partition}


KEY = [LAG.field(name) for name in SHARE_PARTITION_KEY]
STALLS = pa.schema([*KEY, pa.field("is_over", pa.int8()), pa.field("score", pa.int64())])
RECORDS = pa.schema([*KEY, pa.field("records", pa.int64())])


def stalls(*sums: dict[str, Any]) -> pa.Table:
    """Sums of stalls."""
    return rows(STALLS, *sums)


def finding(group: str, partition: int = 0, severity: str = ERROR) -> Finding:
    names = {"topic_id": "t", "partition": partition, "group_id": group}
    return Finding(severity=severity, kind="kind", text="", question="status", **names)


def test_groups_stand_by_their_findings_then_by_their_lag() -> None:
    lags = rows(LAG, key("a-done") | {"lag": 0}, key("b-behind") | {"lag": 2}, key("c-behind") | {"lag": 9})
    ranking = group_ranking([finding("e", severity=WARNING), finding("f"), finding("d"), finding("e")], lags)
    assert list(ranking.places) == ["f", "d", "e", "c-behind", "b-behind"]
    assert [ranking.severity(group) for group in ("f", "e", "c-behind", "a-done")] == [0, 0, BEHIND, CLOSED]
    assert ranking.place("a-done") == ranking.place("never seen") == 5
    column = ranking.severity_of(pa.table({"group_id": ["a-done", "f", "b-behind"]}))
    assert column.to_pylist() == [CLOSED, 0, BEHIND]


def test_each_bad_group_has_a_share_partition_before_the_second_one_of_another() -> None:
    lags = rows(LAG, *(key(group, partition) | {"lag": 5 - partition} for group in "ab" for partition in range(2)))
    findings = [finding("b"), finding("a")]
    order = share_partition_ranking(group_ranking(findings, lags), findings, lags, stalls(), ())
    assert [(group, partition) for group, _, partition in order] == [("b", 0), ("a", 0), ("b", 1), ("a", 1)]


def test_open_work_goes_before_all_that_is_over_and_the_quiet_come_last_by_name() -> None:
    lags = rows(LAG, key("quiet-b"), key("quiet-a") | {"lag": 0}, key("behind") | {"lag": 1_000_000}, key("pinned"))
    stalled = stalls(
        key("pinned") | {"is_over": 0, "score": 60_001}, key("a-was pinned") | {"is_over": 1, "score": 900_001}
    )
    findings = [finding("pinned")]
    groups = group_ranking(findings, lags)
    past = [rows(RECORDS, key("poisoned") | {"records": 1}), rows(RECORDS, key("retried") | {"records": 100})]
    order = share_partition_ranking(groups, findings, lags, stalled, past)
    assert [group for group, _, _ in order] == [
        "pinned", "behind", "a-was pinned", "poisoned", "retried", "quiet-a", "quiet-b",
    ]  # fmt: skip
