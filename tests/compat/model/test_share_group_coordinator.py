"""Share groups beside what a real broker wrote for the same deeds at the same moments.

The deeds are those of the recorded clients (`admin` and `basic`, Kafka 4.3.1; `v44`, Kafka 4.4.0), the moments those
of the records, in milliseconds. Members, topics and hashes are named alike before comparing; the order inside of arrays
has no meaning.
"""

import itertools
import json

import pytest

from state_model.rule_sets import KAFKA_4_3, KAFKA_4_4
from tests.broker_parts.share_group_harness import ShareGroupHarness
from tests.datasets import dataset

pytestmark = pytest.mark.compat

SCRIPTS = {
    ("admin", "gE"): """
        0 create alpha 3
        1 create beta 2
        3028 join e1 alpha beta
        5303 beat e1
        5646 leave e1
        10342 join e2 alpha beta
        10416 leave e2
        18487 alter alpha 0=50 1=0
        18590 join e3 alpha
        18611 leave e3
        18682 delete-offsets beta
        18783 join e4 alpha beta
        20075 beat e4
        20101 leave e4
        27160 restart
        27234 join e5 alpha beta
        27386 leave e5
        29641 drop beta
        32732 create beta 3
        32776 join e6 alpha beta
        32913 leave e6
        38045 restart
        42836 restart
        42966 grow alpha 4
        43573 join e7 alpha beta
        43736 leave e7""",
    ("admin", "gL"): """
        0 create alpha 3
        3185 join l1 alpha
        5557 beat l1
        8090 leave l1
        10328 join l2 alpha
        18387 leave l2
        20187 delete-group
        20299 join l3 alpha
        20589 beat l3
        21590 beat l3
        21612 leave l3
        27160 restart
        27239 join l4 alpha
        27383 leave l4
        29641 drop-other
        38045 restart
        42836 restart
        42966 grow alpha 4
        43582 join l5 alpha
        43727 leave l5""",
    ("admin", "gD"): """
        0 create alpha 3
        1 create beta 2
        3132 join d1 alpha beta
        5805 beat d1
        5869 leave d1
        27160 restart
        29639 drop beta
        32732 create beta 3
        32779 join d2 alpha beta
        32844 leave d2
        38045 restart
        46186 delete-group""",
    ("admin", "gX"): """
        1 create beta 2
        3133 join x1 beta
        5802 beat x1
        5884 leave x1
        27160 restart
        29639 drop beta""",
    ("basic", "g-implicit"): """
        0 create orders 3
        411 join i1-0 orders
        3006 beat i1-0
        3189 leave i1-0
        5889 join i1-1 orders
        6050 leave i1-1
        7620 join i1-2 orders
        7650 leave i1-2
        8708 join i1-3 orders
        8758 leave i1-3
        9956 join ifin orders
        9986 leave ifin""",
    ("v44", "g-implicit"): """
        0 create orders 3
        881 join i1-0 orders
        3092 beat i1-0
        3322 leave i1-0
        6159 join i1-1 orders
        6312 leave i1-1
        8095 join i1-2 orders
        8135 leave i1-2
        9987 join i1-3 orders
        10082 leave i1-3
        11543 join ifin orders
        11587 leave ifin""",
}
RULES = {"v44": KAFKA_4_4}


def played(script, group, rules):
    """The harness after the deeds of a script."""
    harness = ShareGroupHarness(rules=rules, partitions=4)
    start_ms = harness.timers.now_ms()
    harness.configure(session_timeout_ms=10**9)
    for line in script.strip().splitlines():
        at_ms, deed, *words = line.split()
        harness.timers.advance(start_ms + int(at_ms) - harness.timers.now_ms())
        DEEDS[deed](harness, group, words)
    return harness


def alter(harness, group, words):
    topic, *pairs = words
    offsets = {int(partition): int(offset) for partition, offset in (pair.split("=") for pair in pairs)}
    harness.offsets.alter(group, {topic: offsets})


def create(harness, group, words):
    harness.cluster.create(words[0], int(words[1]))
    harness.groups.topics_changed()


def grow(harness, group, words):
    harness.cluster.grow(words[0], int(words[1]))
    harness.groups.topics_changed()


DEEDS = {
    "create": create,
    "grow": grow,
    "drop": lambda harness, group, words: harness.delete_topic(words[0]),
    "drop-other": lambda harness, group, words: harness.groups.topics_deleted(["B" * 21 + "A"]),
    "join": lambda harness, group, words: harness.beat(words[0], " ".join(words[1:]), group=group),
    "beat": lambda harness, group, words: harness.beat(words[0], group=group),
    "leave": lambda harness, group, words: harness.leave(words[0], group=group),
    "alter": alter,
    "delete-offsets": lambda harness, group, words: harness.offsets.delete_offsets(group, words),
    "delete-group": lambda harness, group, words: harness.offsets.delete_group(group),
    "restart": lambda harness, group, words: harness.restart(),
}


def recorded(name, group):
    """What the real broker wrote of a share group, in order."""
    with open(dataset(name) / "formatter-offsets.jsonl", encoding="utf-8") as lines:
        entries = [json.loads(line) for line in lines]
    return [
        {"key": entry["key"], "value": entry["value"]}
        for entry in entries
        if "key" in entry and 10 <= entry["key"]["type"] <= 15 and entry["key"]["data"]["groupId"] == group
    ]


class Names:
    """Gives members, topic ids and hashes the same names in two runs of the same deeds."""

    def __init__(self, records):
        values = [(record["key"], record["value"] and record["value"]["data"]) for record in records]
        self._members = {
            key["data"]["memberId"]: data["clientId"] for key, data in values if key["type"] == 10 and data
        }
        self._hashes = {0: 0}
        self._topics = {}
        for key, data in values:
            if key["type"] == 15 and data:
                for topic in itertools.chain(*data.values()):
                    self._name_topic(topic["topicId"], topic["topicName"])

    def _name_topic(self, topic_id, name):
        if topic_id not in self._topics:
            lives = sum(topic_name == name for topic_name, _ in self._topics.values())
            self._topics[topic_id] = (name, lives)

    def plain(self, value, field=""):
        match value:
            case dict():
                return {name: self.plain(item, name) for name, item in value.items() if name != "assignmentTimestamp"}
            case list():
                return sorted((self.plain(item) for item in value), key=repr)
        if field == "metadataHash":
            return self._hashes.setdefault(value, len(self._hashes))
        if field == "topicId":
            return self._topics[value]
        return self._members[value] if field == "memberId" else value


def alike(records):
    """Records without what differs between two runs of the same deeds: names of chance, times, order in arrays."""
    names = Names(records)
    return [names.plain(record) for record in records]


@pytest.mark.parametrize(("name", "group"), SCRIPTS)
def test_the_same_deeds_at_the_same_moments_write_the_same_records(name, group):
    harness = played(SCRIPTS[name, group], group, RULES.get(name, KAFKA_4_3))
    written = [record for batch in harness.batches(group) for record in batch]
    expected = recorded(name, group)
    assert len(expected) > 10
    assert alike(written) == alike(expected)
