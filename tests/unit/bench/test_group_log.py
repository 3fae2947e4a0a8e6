"""The generated log of the group coordinator is one that a coordinator writes: every record follows from the others."""

import pytest

from bench.group_log import generate
from sharelens.groups.moment import groups_at, streams_groups_at
from sharelens.kafka_log.layout import scan_log_directory
from sharelens.kafka_log.union import unite
from sharelens.tables.logs.groups import read_records_of_groups
from state_model.streams.values import GroupState

pytestmark = pytest.mark.slow


@pytest.mark.soak
def test_members_have_their_tasks_and_partitions_and_all_groups_are_stable(tmp_path):
    generate(tmp_path / "log", records=3000)
    records = read_records_of_groups(unite([scan_log_directory(str(tmp_path / "log"))]), None, False)
    assert records.num_rows == 3000
    assert not records.column("group_id").null_count
    settled = [
        moment.group.group
        for moment in streams_groups_at(records).values()
        if moment.group.group is not None and moment.group.group.state is GroupState.STABLE
    ]
    assert len(settled) >= 15  # the last records may end within an epoch
    for group in settled:
        owned = [task for member in group.members.values() for task in member.assignment.assigned.active]
        assert len(owned) == len(set(owned)) == 500
    share = groups_at(records)
    assert len(share) == 4
    for moment in share.values():
        assert all(len(member.assigned) for member in moment.group.members.values())
