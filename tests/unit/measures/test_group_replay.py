"""Records of share groups whose value has an unknown version."""

from measures.deletions import deleted_by
from measures.group_replay import decoded
from measures.groups import groups
from measures.members import assigned as assigned_members
from measures.schemas import LIFE
from sharelens.questions.timeline_entries import group_entries
from tests.group_logs import assigned, epoch, group_log, initialized, joined

KNOWN = (joined("m"), assigned("m", 2, 0), initialized(0), epoch(2))
UNKNOWN = (joined("n"), assigned("m", 3), initialized(), epoch(3))
LOG = group_log(*KNOWN, *UNKNOWN, undecoded=(4, 5, 6, 7))


def test_only_rows_with_a_known_value_or_none_are_decoded() -> None:
    assert decoded(LOG).column("log_offset").to_pylist() == [0, 1, 2, 3]
    assert decoded(group_log((11, None, None))).num_rows == 1


def test_questions_leave_out_what_they_do_not_know() -> None:
    (row,) = groups(LOG).to_pylist()
    assert (row["group_epoch"], row["member_count"], row["completeness_reason"]) == (2, 1, "quarantined")
    assert [entry["event"] for entry in group_entries(LOG)] == ["member_joined", "rebalanced"]
    assert [span[0] for span in assigned_members(LOG, "T", 0).spans] == ["m"]
    assert deleted_by(LIFE.empty_table(), LOG).to_pylist() == []
