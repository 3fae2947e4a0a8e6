"""What holds in every log of a consumer group, record by record: epochs never go back, a partition has one owner.

No rule of the audit of severity error speaks of it either, but for those that need topics.
"""

from collections import Counter
from collections.abc import Iterable

from state_model.audit.consumer.history import History
from state_model.audit.consumer.table import CHECKS
from state_model.consumer.group import apply
from state_model.consumer.group_values import LEFT_STATIC_EPOCH, ConsumerGroup, member_assignment
from state_model.consumer.reconciliation import Partition
from state_model.group_records import GroupRecord
from tests.audit.written_records import errors_in

RECORD_TYPES = frozenset({3, 4, 5, 6, 7, 8, 16})


def assert_lawful(records: Iterable[GroupRecord]) -> int:
    """Replay the records of one group; other types are passed over. The highest group epoch."""
    group: ConsumerGroup | None = None
    highest = 0
    of_group = [record for record in records if record.record_type in RECORD_TYPES]
    assert errors_in(History(), CHECKS, ((record, 0) for record in of_group)) == []
    for record in of_group:
        before, group = group, apply(group, record)
        if group is None:
            continue
        highest = max(highest, group.group_epoch)
        if before is not None and record.value is not None:
            _assert_epochs_grow(before, group)
        owners = _owners(group)
        assert [at for at, count in owners.items() if count > 1] == [], f"two owners after {record}"
    return highest


def _assert_epochs_grow(before: ConsumerGroup, after: ConsumerGroup) -> None:
    assert after.group_epoch >= before.group_epoch
    assert before.target_assignment_epoch <= after.target_assignment_epoch <= after.group_epoch
    for member_id in before.members.keys() & after.members.keys():
        old, new = (member_assignment(group.members[member_id]).member_epoch for group in (before, after))
        assert new >= old or new == LEFT_STATIC_EPOCH, f"member {member_id} goes back from {old} to {new}"
        assert new <= after.group_epoch


def _owners(group: ConsumerGroup) -> Counter[Partition]:
    """The number of members that have a partition, or must give it up first."""
    assignments = map(member_assignment, group.members.values())
    return Counter(at for each in assignments for at in (*each.assigned, *each.pending))
