"""Rules between the state log and __consumer_offsets: a mismatch counts when it outlasts 60 s in both."""

import pyarrow as pa
import pytest

from sharelens.evidence.schemas import GROUP_RECORD, ODD_GROUP_RECORD
from state_model.audit.columnar.cross_checks import StateLogs, cross_check
from state_model.audit.columnar.group_audit import audit_groups
from state_model.audit.columnar.lives import Turns, lives_of
from state_model.audit.columnar.proofs import Proofs
from state_model.audit.periods import BEGINNING, known_until
from state_model.audit.table import RULES
from state_model.columnar.schemas import SHARE_RECORD
from state_model.share_records import SharePartitionKey
from tests.logs.group_logs import epoch, group_log, initialized

SEVERITIES = {rule.id: rule.severity for rule in RULES if rule.severity}
MINUTE = 60_000
LATE = 20 * MINUTE
OTHER = {"group_id": "other", "topic_id": "T", "partition": 0}


def state_log(*records):
    """SHARE_RECORD rows of group g, topic T: (kind, minute, state epoch, snapshot epoch, partition)."""
    plain = {"group_id": "g", "topic_id": "T", "state_partition": 0, "log_topic_id": "s"}
    rows = [
        {**plain, "record_type": kind, "log_offset": offset, "log_time_ms": minute * MINUTE, "timestamp_ms": 0,
         "state_epoch": state_epoch, "snapshot_epoch": snapshot_epoch, "partition": partition}
        for offset, (kind, minute, state_epoch, snapshot_epoch, partition) in enumerate(records)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, SHARE_RECORD)


def created(minute, state_epoch=2, partition=0):
    return "snapshot", minute, state_epoch, 0, partition


def deleted(minute, partition=0):
    return "tombstone", minute, None, None, partition


def groups_log(*entries):
    """Records of group g, each with its minute, and a late one of another group."""
    rows = group_log(*(entry for _, entry in entries), timestamps_ms=[minute * MINUTE for minute, _ in entries])
    late = group_log((11, None, {"epoch": 1}), group="other", timestamps_ms=[LATE]).to_pylist()
    late[0]["log_offset"] = 1000
    return pa.concat_tables([rows, pa.Table.from_pylist(late, GROUP_RECORD)])


def findings(state, groups, *, exists=True, until_ms=LATE, known_from_ms=BEGINNING, odd=(), read_until_ms=None):
    turns = Turns()
    for begin in range(0, state.num_rows, 2):
        turns.take(state.slice(begin, 2))
    proofs = Proofs()
    odd_records = pa.Table.from_pylist(list(odd), ODD_GROUP_RECORD)
    known_groups = audit_groups(groups, odd_records, frozenset({0}), proofs, count=1)
    known_groups = known_groups._replace(
        until_ms=known_until(known_groups.until_ms, is_one_copy=True, read_until_ms=read_until_ms)
    )
    names = zip(*(state.column(name).to_pylist() for name in ("group_id", "topic_id", "partition")), strict=True)
    logs = StateLogs(
        lives=lives_of(turns.table()),
        with_records=frozenset(SharePartitionKey(*key) for key in names),
        known_from_ms={0: known_from_ms},
        until_ms={0: until_ms},
        count=1,
    )
    cross_check(logs, known_groups, proofs, topic_exists=lambda topic_id: exists)
    return proofs.findings(SEVERITIES).to_pylist()


def rules(*arguments, **options):
    return [row["rule"] for row in findings(*arguments, **options)]


USUAL = ((1, initialized(initializing=[0])), (1, epoch(2)), (2, initialized(0)))


def test_a_healthy_group_has_no_finding():
    assert rules(state_log(created(1)), groups_log(*USUAL)) == []


@pytest.mark.parametrize(
    "state",
    [
        state_log(),  # the creation was never appended
        state_log(created(1), deleted(5)),
        state_log(created(1), deleted(5), created(8)),
    ],
)
def test_an_initialized_partition_without_state_is_an_error(state):
    (row,) = findings(state, groups_log(*USUAL))
    assert (row["rule"], row["severity"], row["topic_id"], row["partition"]) == (
        "initialized_without_state", "error", "T", 0)  # fmt: skip
    assert (row["expected"], row["seen"]) == ("live", "none")
    assert {"topic": "__consumer_offsets", "partition": 0, "offset": 2} in row["records"]
    assert len(row["records"]) <= 2, "of the state log the last life alone"


def begun(group_epoch, *, is_seen=True):
    """A partition whose initialization begins at a group epoch; `is_seen`: the empty list before it is there."""
    before = [(1, initialized())] if is_seen else []
    return *before, (1, epoch(group_epoch)), (1, initialized(initializing=[0])), (2, initialized(0))


@pytest.mark.parametrize(
    ("entries", "state_epoch", "expected"),
    [
        (begun(5), 4, ">= 5"),
        (begun(2, is_seen=False), 1, ">= 2"),  # the group has just got its first member
        (begun(5), 5, None),
        (begun(5, is_seen=False), 4, None),  # compaction may have taken an earlier list
        ((*begun(5)[:3], (2, epoch(6)), (2, initialized(initializing=[0])), (3, initialized(0))), 5, None),
        ((*begun(5)[:3], (2, initialized())), 4, None),  # it failed
    ],
)
def test_a_state_epoch_is_that_of_the_initialization_or_a_later_one(entries, state_epoch, expected):
    rows = [
        row
        for row in findings(state_log(created(1, state_epoch)), groups_log(*entries))
        if row["rule"] == "state_epoch_below_group"
    ]
    assert [(row["expected"], row["seen"]) for row in rows] == ([(expected, str(state_epoch))] if expected else [])


def test_a_reset_that_never_came_leaves_an_older_state_epoch():
    again = ((5, epoch(3)), (5, initialized(0, initializing=[0])), (6, initialized(0)))
    rows = findings(state_log(created(1)), groups_log(*begun(2), *again))
    assert [(row["rule"], row["first_seen_ms"]) for row in rows] == [("state_epoch_below_group", 6 * MINUTE)]
    reset = ("snapshot", 5, 3, 1, 0)
    assert rules(state_log(created(1), reset), groups_log(*begun(2), *again)) == []


def test_a_state_that_is_missing_for_less_than_a_minute_is_none():
    assert rules(state_log(created(3)), groups_log(*USUAL)) == []
    assert rules(state_log(created(1), deleted(5), created(6)), groups_log(*USUAL)) == []
    assert rules(state_log(created(1), deleted(5)), groups_log(*USUAL, (6, initialized()))) == []
    assert rules(state_log(created(1), deleted(5)), groups_log(*USUAL), until_ms=6 * MINUTE) == []


def test_a_topic_that_may_be_deleted_needs_its_state_no_more():
    assert rules(state_log(created(1), deleted(5)), groups_log(*USUAL), exists=None) == []
    assert rules(state_log(), groups_log(*USUAL), exists=None) == ["initialized_without_state"]
    assert rules(state_log(), groups_log(*USUAL), exists=None, known_from_ms=0) == []


@pytest.mark.parametrize(
    "groups",
    [
        groups_log((1, initialized()), (1, epoch(2))),
        groups_log(*USUAL, (5, initialized())),
        groups_log((1, epoch(2))),  # no list at all: the newest one would be there
    ],
)
def test_state_that_the_group_does_not_list_is_a_warning(groups):
    (row,) = findings(state_log(created(1)), groups)
    assert (row["rule"], row["severity"], row["state_partition"]) == ("state_without_group", "warning", 0)


def test_state_of_a_group_that_is_nowhere_is_a_warning():
    assert rules(state_log(created(1)), groups_log()) == ["state_without_group"]


def test_state_that_is_listed_is_none():
    assert rules(state_log(created(1)), groups_log((1, epoch(2)), (1, initialized(initializing=[0])))) == []
    assert rules(state_log(created(1)), groups_log((1, epoch(2)), (1, initialized(deleting=True)))) == []
    assert rules(state_log(created(1)), groups_log((1, epoch(2)), (5, initialized()), (6, initialized(0)))) == []
    early = groups_log((10, initialized(0)), (10, epoch(2)))  # compaction took the lists before
    assert rules(state_log(created(1)), early) == []


@pytest.mark.parametrize("later_records", [(), ((18, epoch(2)),), ((10, epoch(2)), (10, initialized(0)))])
def test_state_behind_the_deletion_of_its_group_is_a_warning(later_records):
    groups = groups_log(*USUAL, (5, (15, None, None)), (5, (11, None, None)), *later_records)
    assert "state_after_group_deletion" in rules(state_log(created(1)), groups)


def test_state_that_goes_with_its_group_is_none():
    groups = groups_log(*USUAL, (5, (15, None, None)), (5, (11, None, None)))
    for last in (4, 5, 6):
        assert rules(state_log(created(1), deleted(last)), groups) == []


@pytest.mark.parametrize("state_epoch", [3, 4, 100])
def test_a_state_epoch_beyond_the_group_epoch_is_an_error(state_epoch):
    (row,) = findings(state_log(created(3, state_epoch)), groups_log(*USUAL))
    assert (row["rule"], row["expected"], row["seen"]) == ("state_epoch_beyond_group", "<= 2", str(state_epoch))


def test_a_state_epoch_that_the_group_epoch_reaches_is_none():
    assert rules(state_log(created(3, 2)), groups_log(*USUAL)) == []
    assert rules(state_log(created(2, 3)), groups_log(*USUAL, (3, epoch(3)))) == []
    assert rules(state_log(created(2, 9)), groups_log((19, epoch(9)), (19, initialized(0)))) == []


def test_what_a_deleted_group_left_fences_the_next_group_of_the_name():
    again = (*USUAL, (5, (15, None, None)), (5, (11, None, None)), (5, epoch(1)), (5, initialized()))
    assert rules(state_log(created(1)), groups_log(*again)) == ["left_state_fences_group", "state_without_group"]
    assert rules(state_log(created(1), deleted(5)), groups_log(*again)) == []


def test_a_group_with_an_undecodable_record_is_left_out():
    place = {"partition": 0, "log_offset": 9, "timestamp_ms": 5, "record_type": 15, "group_id": "g"}
    odd = [{**place, "reason": "truncated_value"}]
    assert rules(state_log(), groups_log(*USUAL), odd=odd) == ["undecodable_group_record"]


def test_partitions_of_one_copy_are_known_together_those_of_several_alone():
    newest_ms = {0: 5, 1: 900}
    assert known_until(newest_ms, is_one_copy=True, read_until_ms=None) == {0: 900, 1: 900}
    assert known_until(newest_ms, is_one_copy=True, read_until_ms=1000) == {0: 1000, 1: 1000}
    assert known_until(newest_ms, is_one_copy=False, read_until_ms=1000) == newest_ms
