"""Random histories of consumer groups that the write side makes: no rule of severity error speaks of them."""

from state_model.audit.consumer.history import History
from state_model.audit.consumer.table import CHECKS
from tests.audit.written_records import errors_in
from tests.depths import examples
from tests.unit.state_model.consumer.test_coordinator import GroupMachine


class AuditedGroup(GroupMachine):
    """The clients, topics and coordinator of the tests of the write side."""

    def teardown(self):
        assert errors_in(History(), CHECKS, [(record, 0) for record in self.world.log]) == []


TestAuditedGroup = AuditedGroup.TestCase
TestAuditedGroup.settings = examples("function")


def test_a_partition_that_was_to_be_revoked_is_assigned_again_with_a_new_epoch():
    group = AuditedGroup()
    for client in "ba":
        group.join(client=client, is_lost=False, names="u")
        group.wait(milliseconds=2000)
    group.beat(client="b", is_lost=False, names=None)
    group.expire_session(client="a")
    group.beat(client="b", is_lost=False, names=None)
    group.teardown()
