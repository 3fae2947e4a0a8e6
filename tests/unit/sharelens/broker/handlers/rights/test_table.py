"""What clients with and without rights see of each API: the answers that Kafka 4.3.1 gave to the same requests.

`kafka_answers.jsonl` has one request a line, in the order of their sending: the ACL entries in force (principal, host,
resource type, name, pattern type, operation, permission), the user, and Kafka's answer; null: it closed the connection.
"""

import asyncio
import json
import re
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from kio.index import load_request_schema, load_response_schema

from sharelens.broker.errors import FrameError
from sharelens.broker.handlers.all import MODULES
from sharelens.broker.handlers.rights.table import RULES
from sharelens.broker.protocol.registry import registered
from sharelens.kafka_formats.messages.api_keys import ApiKey
from tests.broker_parts.acl_answers import REFUSED, entry, facts
from tests.broker_parts.broker_messages import build, plain
from tests.broker_parts.dispatched_broker import DispatchedBroker
from tests.logs.kafka_json import fields_of_json

CASES = [json.loads(line) for line in (Path(__file__).parent / "kafka_answers.jsonl").read_text().splitlines()]
SETTINGS = {
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super_users": "User:admin;User:ANONYMOUS",
    "transaction_state_log_num_partitions": 2,
    "share_coordinator_state_topic_num_partitions": 2,
}
KAFKA_IDS = {"t1": "FIWnbrVbTBq7hSxrkQdvnA", "hidden": "juRmUn6nQVy2IrdLDFTHuQ"}
DIFFERENT = {
    "cluster IDEMPOTENT_WRITE:init_pid_idem": "that Kafka had no producer ids yet",
    "topic DESCRIBE+CREATE auto1:metadata_autocreate": "a topic is created before the answer",
    "group READ * + topic READ t1:share_fetch": "the first answer of a session has all partitions",
    "cluster+group ALTER_CONFIGS:incr_alter_configs": "configurations of what this broker does not have",
}
TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = 2, 3, 4, 5
READ, WRITE, DELETE, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS = 3, 4, 6, 8, 9, 10
OF_CLUSTER = (CLUSTER, "kafka-cluster")
RIGHTS = {
    "none:leave": [(GROUP, "*", READ)],
    "none:sync": [(GROUP, "*", READ)],
    "none:add_parts": [(TRANSACTIONAL_ID, "*", WRITE), (TOPIC, "*", WRITE)],
    "none:add_offsets": [(TRANSACTIONAL_ID, "*", WRITE), (GROUP, "*", READ)],
    "none:txn_offset_commit": [(TRANSACTIONAL_ID, "*", WRITE), (GROUP, "*", READ), (TOPIC, "*", READ)],
    "none:offset_delete": [(GROUP, "*", DELETE), (TOPIC, "*", READ)],
    "none:quotas": [(*OF_CLUSTER, DESCRIBE_CONFIGS)],
    "none:describe_scram_named": [(*OF_CLUSTER, DESCRIBE)],
    "none:share_ack": [(GROUP, "*", READ), (TOPIC, "*", READ)],
    "none:init_share_state": [(*OF_CLUSTER, CLUSTER_ACTION)],
    "none:write_share_state": [(*OF_CLUSTER, CLUSTER_ACTION)],
    "none:delete_share_state": [(*OF_CLUSTER, CLUSTER_ACTION)],
    "none:streams_hb": [(GROUP, "*", READ), (TOPIC, "*", DESCRIBE)],
    "none:alter_share_offsets": [(GROUP, "*", READ), (TOPIC, "*", READ)],
    "none:delete_topics_name": [(TOPIC, "*", DELETE)],
}
"""The rights of APIs of which no answer of a Kafka to a client with all of them was recorded, by the specification."""
PRINCIPALS = {"User:alice", "User:bob", "User:*", "User:m"}
TEXT_OF_REQUEST = re.compile('"Request Request[^"]*"')
"""What controllers say of a request that they refuse: the request itself, shortened in the recording."""
SESSIONS_END_MS = 120_000


class Replay:
    """The requests, sent to a broker with the topics and groups that the Kafka had."""

    def __init__(self, folder):
        self.broker = DispatchedBroker(folder, **SETTINGS)
        for name in ("t1", "hidden", "sin", "sout"):
            self.broker.create(name, 1)
        self._fill()
        catalog = self.broker.broker.catalog
        self._ids = {KAFKA_IDS[name]: catalog.by_name(name).topic_id for name in KAFKA_IDS}
        self._rights = []

    def _fill(self):
        """A share group with an assignment, a streams group, a transaction coordinator."""
        member = {"group_id": "sg", "member_id": "A" * 21 + "g", "subscribed_topic_names": ["t1"]}
        self.broker.call(76, 1, **member, member_epoch=0)
        self.broker.timers.advance(2_000)
        assigned = self.broker.call(76, 1, **member, member_epoch=2)
        assert assigned["assignment"]["topic_partitions"]
        self.broker.call(10, 6, key_type=1, coordinator_keys=["tx1"])
        topology = {"epoch": 0, "subtopologies": [{"subtopology_id": "0", "source_topics": ["sin"]}]}
        streams = {"group_id": "stg", "member_id": "B" * 22, "topology": topology, "rebalance_timeout": 300_000}
        tasks = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
        assert self.broker.call(88, 0, **streams, **tasks, member_epoch=0)["error_code"] == 0
        offsets = next(case["request"] for case in CASES if case["note"] == "none:offset_commit")
        fields = fields_of_json(load_request_schema(8, 8), offsets)
        (first, second) = self.broker.call(8, 8, **fields)["topics"]
        assert first["partitions"][0]["error_code"] == second["partitions"][0]["error_code"] == 0

    def answer(self, case):
        """The answer of this broker, and that of Kafka with this broker's topic ids; None for a closed connection."""
        if case["note"] == "observer:metadata_by_name":
            self.broker.timers.advance(SESSIONS_END_MS)
        if case["rights"] != self._rights:
            self._rights = case["rights"]
            acls = self.broker.broker.acls
            acls.remove([each for each in acls.authorizer.entries if each.principal in PRINCIPALS])
            acls.add([entry(*fields) for fields in case["rights"]])
        text = TEXT_OF_REQUEST.sub('"Cluster authorization failed."', json.dumps([case["request"], case["answer"]]))
        for kafka, local_id in self._ids.items():
            text = text.replace(kafka, local_id)
        request, expected = json.loads(text)
        key, version = case["api"], case["version"]
        response = load_response_schema(key, version)
        if expected is not None:
            expected = plain(build(response, fields_of_json(response, expected)))
        fields = fields_of_json(load_request_schema(key, version), request)
        try:
            return self.broker.call_as(f"User:{case['user']}", key, version, fields), expected
        except FrameError:
            return None, expected


@cache
def answers():
    """All cases once, in their order."""

    async def replay():
        with TemporaryDirectory() as folder:
            replayed = Replay(Path(folder) / "log")
            try:
                return [replayed.answer(case) for case in CASES]
            finally:
                replayed.broker.close()

    return asyncio.run(replay())


@cache
def answers_with_rights():
    """The answer to each request of RIGHTS once its rights are given."""

    async def ask():
        cases = {case["note"]: case for case in CASES}
        with TemporaryDirectory() as folder:
            replayed = Replay(Path(folder) / "log")
            try:
                return {
                    note: replayed.answer(cases[note] | {"rights": [allowing(*right) for right in rights]})[0]
                    for note, rights in RIGHTS.items()
                }
            finally:
                replayed.broker.close()

    return asyncio.run(ask())


def allowing(kind, name, operation):
    """The entry that gives alice a right."""
    return "User:alice", "*", kind, name, 3, operation, 3


def is_refused(answer):
    return any(code.name in repr(answer) for code in REFUSED)


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: CASES[number]["note"].replace(" ", "_"))
def test_the_answer_is_the_one_of_kafka(number):
    actual, expected = answers()[number]
    if CASES[number]["note"] in DIFFERENT:
        assert facts(actual) != facts(expected)
        assert is_refused(actual) == is_refused(expected)
        return
    assert facts(actual) == facts(expected)


def test_the_cases_cover_the_apis():
    """Of each API that needs a right, a client without it."""
    assert MODULES
    without_rights = {case["api"] for case in CASES if case["note"].startswith("none:")}
    assert without_rights >= {key for key in registered() if RULES[key].rights != "none"}


@pytest.mark.parametrize("note", RIGHTS)
def test_with_the_rights_of_the_specification_a_request_is_not_refused(note):
    assert is_refused(answers()[[case["note"] for case in CASES].index(note)][0])
    assert not is_refused(answers_with_rights()[note])


def test_each_api_that_needs_a_right_is_answered_with_it():
    names = {code.name for code in REFUSED}
    allowed = {
        case["api"]
        for case, (_, answer) in zip(CASES, answers(), strict=True)
        if answer is not None and not any(name in repr(answer) for name in names)
    }
    allowed |= {case["api"] for case in CASES if case["note"] in RIGHTS}
    partly = {ApiKey.OFFSET_COMMIT, ApiKey.INCREMENTAL_ALTER_CONFIGS}  # each part allowed in one case or another
    assert allowed | partly >= {key for key in registered() if RULES[key].rights != "none"}


def test_each_api_has_a_rule():
    assert set(registered()) <= set(RULES)
