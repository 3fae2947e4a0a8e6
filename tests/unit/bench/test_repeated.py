"""The repeated log is one that real coordinators could have written: the audit finds nothing in it."""

from pathlib import Path

import pytest

from bench import repeated
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.audits import audit
from sharelens.questions.groups.groups import EVER
from sharelens.source.request import Source
from sharelens.tables.opening import open_evidence
from sharelens.tables.reading import read_share_partitions

pytestmark = pytest.mark.soak


def test_copies_of_workloads_are_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated, "PROFILES", ("poison",))
    monkeypatch.setattr(repeated, "RECORDS_OF_EACH", 300)
    monkeypatch.setattr(repeated, "IN_A_ROUND", 2)
    written = repeated.generate_repeated(tmp_path / "log", records=6_000, state_partitions=4)
    with open_evidence(Source(log_dirs=(str(tmp_path / "log"),))) as tables:
        groups = set(read_share_partitions(tables).column("group_id").to_pylist())
        report = audit.audit(tables, KeyFilter(), EVER, audit.AuditChoice())
    assert written >= 6_000
    assert {name.rsplit("-", 1)[1] for name in groups} >= {"0", "1", "2", "3"}
    assert report.parts["findings"].table.num_rows == 0
