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
