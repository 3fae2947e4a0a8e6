"""The stage audit: in several runs as in one, findings that are withdrawn and come back, lakes without its tables."""

import shutil
from pathlib import Path

import pyarrow.compute as pc
import pytest

from jobs.audit import tasks
from jobs.publish import current_versions, published_versions
from sharelens.lake.lake import Lake
from sharelens.lake.scan import open_lake
from tests.lakes import content, differences
from tests.logs.state_logs import START_MS, snapshot, update, write_log_directory
from tests.processes.in_process import TO_AUDIT, make_lake, story_lake
from tests.settings_in_files import group_configs

pytestmark = pytest.mark.slow

FINDINGS = ("gold.audit_finding",)
STORY = [
    snapshot("g", start=0),
    snapshot("h", start=0),
    *(update("g", batches=[(n, n, 1, 0)], at_ms=START_MS + n) for n in range(3)),
    update("h", batches=[(0, 4, 4, 3)], at_ms=START_MS + 4),
    snapshot("g", epoch=7, at_ms=START_MS + 5),
    update("g", start=2, epoch=3, at_ms=START_MS + 6),
    update("h", start=5, batches=[(5, 5, 0, 3)], at_ms=START_MS + 7),
]


def standing(lake: Path) -> dict[str, tuple[int, int | None]]:
    """First and withdrawing run of each finding, by rule, of group g."""
    rows = open_lake(lake).scan("gold.audit_finding").filter(pc.field("group_id") == "g").to_pylist()
    return {row["rule"]: (row["first_run_id"], row["withdrawn_run_id"]) for row in rows}


@pytest.mark.soak
def test_runs_over_parts_of_a_log_find_what_one_run_does(tmp_path: Path) -> None:
    logs = write_log_directory(tmp_path / "logs", STORY)
    for until_ms in (START_MS + 1, START_MS + 3, START_MS + 6, None):
        make_lake(tmp_path / "parts", logs, until_ms=until_ms, stages=TO_AUDIT)
    one_run_tables = content(story_lake("audit-stage", STORY), FINDINGS)
    assert one_run_tables[FINDINGS[0]].num_rows > 4
    assert not differences(content(tmp_path / "parts", FINDINGS), one_run_tables)


def test_a_finding_that_evidence_refutes_is_withdrawn_and_stands_again_when_it_comes_back(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    story = [snapshot("g"), snapshot("g", epoch=2)]
    make_lake(lake, write_log_directory(tmp_path / "first", story), stages=TO_AUDIT)
    assert standing(lake)["snapshot_epoch_skips"] == (1, None)
    longer_logs = write_log_directory(tmp_path / "more", [*story, update("g", epoch=2)])
    make_lake(lake, longer_logs, stages=TO_AUDIT)
    assert standing(lake)["snapshot_epoch_skips"] == (1, None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "STORED", {rule: text for rule, text in tasks.STORED.items() if rule != 100})
        make_lake(lake, rebuild="audit", stages=TO_AUDIT)
    first, withdrawn = standing(lake)["snapshot_epoch_skips"]
    assert first == 1
    assert withdrawn is not None
    make_lake(lake, rebuild="audit", stages=TO_AUDIT)
    assert standing(lake)["snapshot_epoch_skips"] == (1, None)


def test_other_settings_judge_their_groups_again(tmp_path: Path) -> None:
    logs = write_log_directory(tmp_path / "logs", STORY)
    make_lake(tmp_path / "lake", logs, stages=TO_AUDIT)
    make_lake(tmp_path / "lake", observations=(group_configs(h=3),), stages=("audit", "publish"))
    rows = open_lake(tmp_path / "lake").scan("gold.audit_finding").to_pylist()
    assert "available_at_limit" in {row["rule"] for row in rows if row["group_id"] == "h"}
    make_lake(tmp_path / "whole", logs, observations=(group_configs(h=3),), stages=TO_AUDIT)
    assert not differences(content(tmp_path / "lake", FINDINGS), content(tmp_path / "whole", FINDINGS))


def test_a_lake_without_the_tables_gets_them_at_its_next_run(tmp_path: Path) -> None:
    lake = Path(shutil.copytree(story_lake("audit-stage", STORY), tmp_path / "lake"))
    before = content(lake, FINDINGS)
    for name in ("audit_state", "audit_finding"):
        shutil.rmtree(lake / "gold" / name)
    summary = make_lake(lake, write_log_directory(tmp_path / "logs", STORY))
    assert summary.counts["audited_records"] == len(STORY)
    assert not differences(content(lake, FINDINGS), before)
    assert current_versions(Lake(lake)) == published_versions(Lake(lake))


def test_the_states_of_the_replay_are_compared(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    logs = write_log_directory(tmp_path / "logs", [snapshot("g", start=4)])
    with pytest.MonkeyPatch.context() as patch:
        compared = tasks.PartitionsAudit.compare
        without = lambda audit, states, logs: compared(audit, states.slice(0, 0), logs)  # noqa: E731
        patch.setattr(tasks.PartitionsAudit, "compare", without)
        make_lake(lake, logs, stages=TO_AUDIT)
    assert "replay_disagrees" in standing(lake)
    make_lake(lake, rebuild="audit", stages=TO_AUDIT)
    assert standing(lake)["replay_disagrees"][1] is not None


def test_settings_behind_a_rebuild_of_the_audit_are_taken_up(tmp_path: Path) -> None:
    lake = Path(shutil.copytree(story_lake("audit-stage", STORY), tmp_path / "lake"))
    make_lake(lake, rebuild="audit", stages=("ingest", "decode", "replay", "audit"))
    make_lake(lake, observations=(group_configs(h=3),), stages=("audit", "publish"))
    rows = open_lake(lake).scan("gold.audit_finding").to_pylist()
    assert "available_at_limit" in {row["rule"] for row in rows if row["group_id"] == "h"}
