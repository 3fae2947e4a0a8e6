"""Clients of a group whose members have epochs, step by step against a broker that may be restarted at any time.

Topics have the same ids in each world, so that answers and records are comparable.
"""

import itertools
import tempfile
from abc import ABC, abstractmethod
from functools import partial
from pathlib import Path

from state_model.uuids import uuid_text
from tests.broker_parts.dispatched_broker import DispatchedBroker
from tests.broker_parts.group_calls import log_records

COMMIT = (8, 9)
HALF_MS = 30_000
"""Two of these are longer than a session."""
COMMON_OPERATIONS = ["join", "join", "beat", "beat", "beat", "work", "work", "silent", "leave", "commit", "expire"]


class GroupWorld(ABC):
    """A broker and the clients of a group; a client knows its epoch and what it owns, and goes on when it is fenced.

    `owned` and `answered` are fields of heartbeats: what a client says it has, and what the broker gave it.
    """

    nothing_owned = {}

    def __init__(self, folder, **settings):
        ids = (uuid_text(number.to_bytes(16, "big")) for number in itertools.count(1))
        self.broker = DispatchedBroker(folder, make_id=partial(next, ids), **settings)
        self.epochs, self.answered, self.owned, self.fenced = {}, {}, {}, set()

    @abstractmethod
    def heartbeat(self, member, epoch, **fields):
        """The answer to a heartbeat."""

    @abstractmethod
    def join_fields(self, member):
        """The fields of a heartbeat that joins."""

    @abstractmethod
    def assigned_fields(self, answer):
        """What an answer gives, as fields of heartbeats; None: it is unchanged."""

    @abstractmethod
    def parts_of(self, fields):
        """What the fields of a heartbeat say that the client owns."""

    def member_id(self, member):
        """The id of a client as a member."""
        return member

    def own_step(self, operation, member):
        """The answers of an operation that only groups of this kind have."""
        return []

    def step(self, operation, member):
        """The answers of an operation."""
        self.broker.timers.advance(1_000)
        is_member = member in self.epochs
        match operation:
            case "join":
                self.fenced.discard(member)
                self.owned[member] = self.nothing_owned
                return [self._beat(member, 0, **self.nothing_owned, **self.join_fields(member))]
            case "beat" if is_member:
                return [self._beat(member, self.epochs[member], **self.owned[member])]
            case "silent" if is_member:
                return [self._beat(member, self.epochs[member])]
            case "work" if is_member:
                self.owned[member] = self.answered.get(member, self.nothing_owned)
            case "leave" if is_member:
                self.forget(member)
                return [self._beat(member, -1)]
            case "commit" if is_member:
                return [self._commit(member, self.epochs[member]), self._commit(member, self.epochs[member] - 1)]
            case "expire" if is_member and member not in self.fenced:
                return self._expire(member)
            case _:
                return self.own_step(operation, member)
        return []

    def _beat(self, member, epoch, **fields):
        answer = self.heartbeat(member, epoch, **fields)
        if answer["error_code"].value == 0 and epoch >= 0:
            assert epoch == 0 or answer["member_epoch"] >= epoch, "epochs never go back"
            self.epochs[member] = answer["member_epoch"]
            assigned = self.assigned_fields(answer)
            if assigned is not None:
                self.answered[member] = assigned
        return answer

    def forget(self, member):
        """A client has left."""
        for state_by_member in (self.epochs, self.answered, self.owned):
            state_by_member.pop(member, None)
        self.fenced.discard(member)

    def _expire(self, member):
        """A member that is silent for longer than its session, while the others go on."""
        other_members = [other for other in self.epochs if other != member and other not in self.fenced]
        answers = [self._beat(each, self.epochs[each]) for each in (member, *other_members)]
        for _ in range(2):
            self.broker.timers.advance(HALF_MS)
            answers += [self._beat(other, self.epochs[other]) for other in other_members]
        self.fenced.add(member)
        return answers

    def _commit(self, member, epoch):
        partitions = [{"partition_index": 0, "committed_offset": 5}]
        body = {"group_id": "g", "member_id": self.member_id(member), "generation_id_or_member_epoch": epoch}
        answer = self.broker.call(*COMMIT, **body, topics=[{"name": "in", "partitions": partitions}])
        return answer["topics"][0]["partitions"][0]["error_code"]

    def configure(self, name, value):
        """The code for a change of the group's configuration."""
        configs = [{"name": name, "config_operation": 0, "value": value}]
        resources = [{"resource_type": 32, "resource_name": "g", "configs": configs}]
        return self.broker.call(44, 1, resources=resources)["responses"][0]["error_code"]

    def records(self):
        """All records of the group."""
        return log_records(self.broker.broker, "g")

    def check(self):
        """No part is owned by two clients that the group knows, and what a fenced client sends writes nothing."""
        owned = [part for member in self.epochs.keys() - self.fenced for part in self.parts_of(self.owned[member])]
        assert len(owned) == len(set(owned)), "a part has one owner"
        before = self.records() if self.fenced else None
        for member in self.fenced:
            code = self.heartbeat(member, self.epochs[member], **self.owned[member])["error_code"].value
            assert (code, self._commit(member, self.epochs[member]).value) == (25, 25)
        assert not self.fenced or self.records() == before


def run_history(make_world, history, check_records=None):
    """Play operations (name, member, whether the broker is restarted before) in two worlds, one without restarts.

    check_records: called with the records of the group at the end.
    """
    with tempfile.TemporaryDirectory() as folder:
        steady, restarted = (make_world(Path(folder) / name) for name in ("steady", "restarted"))
        for operation, member, restarts in history:
            if restarts:
                restarted.broker.restart()
            answers = [world.step(operation, member) for world in (steady, restarted)]
            assert answers[0] == answers[1]
            steady.check()
            restarted.check()
        assert steady.records() == restarted.records()
        if check_records is not None:
            check_records(steady.records())
        steady.broker.close()
        restarted.broker.close()
