"""What a folder of evidence holds: the group's part of the window, from every kind of source the same."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sharelens.evidence_folder.tables import TABLES, meaning
from sharelens.measures.settings.over_time import DELIVERY_COUNT_LIMIT
from state_model.errors import SharelensError, UsageError
from state_model.java import partition_for
from tests.evidence_folders import FROM_MS, STORY, TO_MS, log_directory, question, write_evidence
from tests.logs.metadata_logs import group_setting, write_metadata
from tests.logs.state_logs import (
    ORDERS_ID,
    START_MS,
    snapshot,
    update,
    write_log_directory,
    write_state_partition,
)
from tests.processes.in_process import make_lake

pytestmark = pytest.mark.slow

ALWAYS = [described for described in TABLES if described.name != "configuration"]
"""The tables of evidence without a metadata log."""
SETTINGS = [
    (START_MS - 9, group_setting("g", DELIVERY_COUNT_LIMIT, "3")),
    (START_MS + 1500, group_setting("g", DELIVERY_COUNT_LIMIT, "4")),
    (START_MS + 1600, group_setting("h", DELIVERY_COUNT_LIMIT, "5")),
    (START_MS + 1700, group_setting("g", "plugin.password", "planted")),
    (START_MS + 9000, group_setting("g", DELIVERY_COUNT_LIMIT, None)),
]
HOSTILE = "../../etc\n</script><b>=1+1"


def table(folder: Path, name: str) -> list[dict[str, object]]:
    return list(pq.read_table(folder / "tables" / f"{name}.parquet").to_pylist())


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return log_directory(tmp_path_factory.mktemp("evidence") / "logs")


def content(folder: Path) -> dict[str, bytes]:
    files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in files.items() if not name.startswith("manifest.")}


def test_the_records_of_the_group_in_the_window_with_their_bytes(logs: Path, tmp_path: Path) -> None:
    write_evidence(tmp_path / "one", logs)
    rows = table(tmp_path / "one", "record")
    assert [(row["log_offset"], row["group_id"], row["start_offset"]) for row in rows] == [(3, "g", -1), (5, "g", 6)]
    text = json.loads((tmp_path / "one" / "tables" / "record.json").read_text("ascii"))
    assert [bytes.fromhex(row["value"]) for row in text] == [row["value"] for row in rows]
    assert rows[0]["state_batches"][1] == {  # type: ignore[index]
        "first_offset": 5, "last_offset": 5, "delivery_state": 4, "delivery_count": 2,
    }  # fmt: skip


def test_states_and_histories_stop_at_the_windows_ends(logs: Path, tmp_path: Path) -> None:
    write_evidence(tmp_path / "one", logs)
    (before,), (after,) = table(tmp_path / "one", "state_before"), table(tmp_path / "one", "state_after")
    assert (before["start_offset"], before["log_offset"]) == (0, 2)
    assert (after["start_offset"], after["log_offset"]) == (6, 5)
    assert [row["log_offset"] for row in table(tmp_path / "one", "share_partition_history")] == [3, 5]
    stood = table(tmp_path / "one", "delivery_history")
    assert {(row["first_offset"], row["last_offset"], row["delivery_state_name"]) for row in stood} >= {
        (0, 9, "AVAILABLE"), (0, 4, "ACKNOWLEDGED"), (5, 5, "ARCHIVED"), (6, 9, "AVAILABLE"),
    }  # fmt: skip
    assert all(row["delivery_count"] == 1 for row in stood if row["first_offset"] == 6)
    (extent,) = table(tmp_path / "one", "extent")
    assert [extent[name] for name in ("before_log_offset", "first_window_log_offset", "last_window_log_offset")] == [
        2,
        3,
        5,
    ]
    assert (extent["window_records"], extent["group_records"]) == (3, 2)


@pytest.mark.soak
def test_a_lake_and_a_log_that_grew_behind_the_window_give_the_same_bytes(tmp_path: Path) -> None:
    logs = log_directory(tmp_path / "logs")
    write_metadata(logs, SETTINGS[:4])
    write_evidence(tmp_path / "one", logs)
    longer = log_directory(tmp_path / "longer", [*STORY, update("g", batches=[(10, 12, 2, 1)], at_ms=START_MS + 9000)])
    write_metadata(longer, SETTINGS)
    write_evidence(tmp_path / "two", longer)
    make_lake(tmp_path / "lake", logs)
    write_evidence(tmp_path / "three", lake=tmp_path / "lake")
    make_lake(tmp_path / "lake", longer)
    write_evidence(tmp_path / "four", lake=tmp_path / "lake")
    first = content(tmp_path / "one")
    assert len(first) == 3 * len(TABLES) + 2
    for other in ("two", "three", "four"):
        assert content(tmp_path / other) == first
    rows = table(tmp_path / "one", "configuration")
    assert [(row["entity"], row["key"], row["value"], row["valid_to_ms"]) for row in rows] == [
        ("g", DELIVERY_COUNT_LIMIT, "3", START_MS + 1500),
        ("g", DELIVERY_COUNT_LIMIT, "4", None),
    ]


@pytest.mark.soak
def test_the_audit_of_the_group_ends_with_the_window(tmp_path: Path) -> None:
    odd = [update(group, batches=[(5, 5, 1, 0)], at_ms=START_MS + at) for group, at in (("g", 1000), ("h", 1000))]
    later = update("g", batches=[(9, 9, 1, 1)], at_ms=START_MS + 4000)
    logs = log_directory(tmp_path / "logs", [*STORY[:4], *odd, *STORY[4:], later])
    write_evidence(tmp_path / "one", logs)
    rows = table(tmp_path / "one", "audit")
    assert [(row["rule"], row["group_id"], row["count"]) for row in rows if row["severity"] == "error"] == [
        ("acquired_state_written", "g", 1)
    ]
    assert "acquired_state_written" in (tmp_path / "one" / "report.html").read_text("utf-8")
    make_lake(tmp_path / "lake", logs)
    write_evidence(tmp_path / "two", lake=tmp_path / "lake")
    assert content(tmp_path / "two") == content(tmp_path / "one")


@pytest.mark.soak
def test_the_audit_names_share_partitions_of_the_group_that_lie_in_the_wrong_state_partition(tmp_path: Path) -> None:
    logs = log_directory(tmp_path / "logs")
    groups = ["g", *(f"g{number}" for number in range(20))]
    homes = {group: partition_for(group, ORDERS_ID, 0, 3) for group in groups}
    for number in range(3):
        partition_snapshots = [
            snapshot(group, start=0) for group in groups if homes[group] == number or (group == "g" and number == 0)
        ]
        write_state_partition(logs, partition_snapshots, number=number)
    assert homes["g"] != 0
    write_evidence(tmp_path / "one", logs)
    rows = [row for row in table(tmp_path / "one", "audit") if row["rule"] == "misplaced_share_partition"]
    assert [(row["group_id"], row["state_partition"], row["expected"]) for row in rows] == [("g", 0, str(homes["g"]))]
    make_lake(tmp_path / "lake", logs)
    write_evidence(tmp_path / "two", lake=tmp_path / "lake")
    assert content(tmp_path / "two") == content(tmp_path / "one")


def test_complete_evidence_says_so_and_what_is_missing_is_told(logs: Path, tmp_path: Path) -> None:
    assert write_evidence(tmp_path / "one", logs).content.incomplete == []
    early = write_evidence(tmp_path / "two", logs, about=question(from_ms=START_MS - 5))
    assert [(note.code, note.incomplete) for note in early.content.notes][:1] == [("begins_late", False)]
    late = write_evidence(tmp_path / "three", logs, about=question(to_ms=START_MS + 99_000))
    assert [note.code for note in late.content.incomplete] == ["ends_early"]
    manifest = json.loads((tmp_path / "three" / "manifest.json").read_text("ascii"))
    assert manifest["complete"] is False
    assert [note["code"] for note in manifest["incomplete_because"]] == ["ends_early"]
    assert "incomplete" in (tmp_path / "three" / "report.html").read_text("utf-8")


def test_gaps_and_undecodable_records_of_the_window_make_it_incomplete(tmp_path: Path) -> None:
    story = [*STORY[:3], STORY[3] | {"damage": "value_version"}, *STORY[4:]]
    logs = log_directory(tmp_path / "logs", story)
    make_lake(tmp_path / "lake", logs)
    written = write_evidence(tmp_path / "one", logs)
    write_evidence(tmp_path / "two", lake=tmp_path / "lake")
    assert content(tmp_path / "one") == content(tmp_path / "two")
    codes = [note.code for note in written.content.incomplete]
    assert codes == ["gap_in_window", "quarantined", "state_after_incomplete"]
    rows = table(tmp_path / "one", "record")
    assert [(row["log_offset"], row["undecodable"]) for row in rows] == [(3, "unknown_value_version"), (5, None)]
    assert rows[0]["value"]
    (broken,) = table(tmp_path / "one", "quarantine")
    assert (broken["offset"], broken["file"], broken["reason"]) == (3, None, "unknown_value_version")
    other = write_evidence(tmp_path / "three", logs, about=question("h")).content
    assert [note.code for note in other.incomplete] == []


def test_hostile_names_are_text_everywhere_and_never_a_path(tmp_path: Path) -> None:
    logs = write_log_directory(tmp_path / "logs", [snapshot(HOSTILE), *(r for r in STORY if r["group_id"] == "h")])
    write_evidence(tmp_path / "one", logs, about=question(HOSTILE, from_ms=START_MS, case_id="</title><script>x"))
    names = {path.name for path in (tmp_path / "one" / "tables").iterdir()}
    assert names == {f"{described.name}.{form}" for described in ALWAYS for form in ("csv", "json", "parquet")}
    page = (tmp_path / "one" / "report.html").read_text("utf-8")
    assert "<script" not in page
    assert "<b>" not in page
    readme = (tmp_path / "one" / "README.md").read_text("utf-8")
    assert "\\<b\\>" in readme
    assert "</script><b>" not in readme
    assert table(tmp_path / "one", "record")[0]["group_id"] == HOSTILE


def test_unknown_names_and_windows_before_the_evidence_leave_nothing(logs: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no share group nobody"):
        write_evidence(tmp_path / "one", logs, about=question("nobody"))
    with pytest.raises(UsageError, match="no topic nothing"):
        write_evidence(tmp_path / "one", logs, about=question(topics=("nothing",)))
    with pytest.raises(SharelensError, match="lies before the evidence"):
        write_evidence(tmp_path / "one", logs, about=question(from_ms=1, to_ms=2))
    with pytest.raises(UsageError, match="--to does not lie after --from"):
        question(to_ms=FROM_MS)
    with pytest.raises(UsageError, match="--case"):
        question(case_id="a\nb")
    assert list(tmp_path.iterdir()) == []
    assert TO_MS > FROM_MS


def test_every_column_is_explained(logs: Path, tmp_path: Path) -> None:
    written = write_evidence(tmp_path / "one", logs)
    tables = {described.name: described for described in TABLES}
    assert set(written.content.columns) == {described.name for described in ALWAYS}
    silent = [
        f"{name}.{field.name}"
        for name, schema in written.content.columns.items()
        for field in schema
        if not meaning(tables[name], field.name)
    ]
    assert silent == []
