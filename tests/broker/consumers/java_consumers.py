"""A session with Java consumers of the new protocol and Kafka's tool for consumer groups; what every step showed.

The session makes all its names itself, so that the same one on two brokers can be compared line by line.
"""

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from py4j.protocol import Py4JJavaError

from tests.broker.java import JavaMachine
from tests.broker.kafka_tools import CONSUMER_GROUPS

SETTINGS = {
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.assignment.interval.ms": "0",
    "offsets.topic.num.partitions": "1",
}
"""Configurations of the broker that a session needs."""
GROUP, TOPIC, OTHER_TOPIC = "readers", "orders", "orders-late"
PATTERN_GROUP, MIXED_GROUP = "pattern-readers", "mixed-readers"
PARTITIONS, RECORDS = 4, 5
TIMEOUT_S, POLL_MS = 60, 100
RANDOM_ID = re.compile(r"(?<![\w.-])[\w-]{22}(?![\w-])|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
RESETS = {
    "to-offset": ("--to-offset", "2"),
    "shift-by": ("--shift-by", "1"),
    "shift-by beyond the end": ("--shift-by", "99"),
    "to-datetime": ("--to-datetime", "2020-01-01T00:00:00.000"),
    "by-duration": ("--by-duration", "P9999D"),
    "to-latest": ("--to-latest",),
    "to-current": ("--to-current",),
    "to-earliest": ("--to-earliest",),
}
CLASSIC = {"group_protocol": "classic", "heartbeat_interval_ms": "500", "session_timeout_ms": "10000"}
Steps = dict[str, tuple[int, list[str]]]
"""The exit code and the sorted lines of each step."""


class _Member:
    """A KafkaConsumer with group.protocol=consumer."""

    def __init__(self, machine: JavaMachine, bootstrap: str, group: str, **config: str) -> None:
        self._jvm = machine.jvm
        properties = machine.jvm.java.util.Properties()
        text = "org.apache.kafka.common.serialization.StringDeserializer"
        settings = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
            "key.deserializer": text,
            "value.deserializer": text,
            "metadata.max.age.ms": "500",
        } | {name.replace("_", "."): value for name, value in config.items()}
        for name, value in settings.items():
            properties.put(name, value)
        self.java = machine.jvm.org.apache.kafka.clients.consumer.KafkaConsumer(properties)
        self.values: list[str] = []

    def poll(self) -> None:
        """One poll; its values are kept."""
        records = self.java.poll(self._jvm.java.time.Duration.ofMillis(POLL_MS))
        self.values += [record.value() for record in records.iterator()]

    @property
    def has_read_all(self) -> bool:
        """Whether it has read all records of its partitions, perhaps of others too."""
        partitions = {at.rpartition("-")[2] for at in self.assignment}
        return {f"{partition} {number}" for partition in partitions for number in range(RECORDS)} <= {*self.values}

    @property
    def assignment(self) -> list[str]:
        """Its partitions, as Kafka prints them."""
        return sorted(at.toString() for at in self.java.assignment())


class Session:
    """The steps on one broker."""

    def __init__(self, machine: JavaMachine, bootstrap: str, folder: Path) -> None:
        self._machine, self._bootstrap, self._folder = machine, bootstrap, folder
        self.steps: Steps = {}

    def run(self) -> Steps:
        """All steps, in their order."""
        for topic in (TOPIC, OTHER_TOPIC):
            _new_topic(self._bootstrap, topic)
        self._with_members()
        self._without_members()
        self._with_a_pattern()
        self._with_both_protocols()
        self._expressions()
        return self.steps

    def _with_members(self) -> None:
        with ExitStack() as members:
            # The static one closes first, so that it makes no heartbeat after the other has left.
            second = members.enter_context(self._member(GROUP, client_id="second"))
            first = members.enter_context(self._member(GROUP, client_id="first", group_instance_id="place-1"))
            first.java.subscribe([TOPIC])
            self._await("the first has all", lambda: len(first.assignment) == PARTITIONS, first)
            second.java.subscribe([TOPIC])
            pair, each_half = (first, second), [PARTITIONS // 2] * 2
            self._await("each has half", lambda: [len(each.assignment) for each in pair] == each_half, *pair)
            self._await("each has read its half", lambda: all(each.has_read_all for each in pair), *pair)
            for member in pair:
                member.java.commitSync()
            self.steps["records"] = 0, sorted(set(first.values + second.values))
            self.steps["assignments"] = 0, [*first.assignment, "-", *second.assignment]
            self._lists()
            self._descriptions("stable")
            self._tool(
                "reset with members", "--reset-offsets", "--group", GROUP, "--all-topics", "--to-earliest", "--execute"
            )
            self._tool("delete with members", "--delete", "--group", GROUP)
            self._tool("delete offsets with members", "--delete-offsets", "--group", GROUP, "--topic", TOPIC)

    def _lists(self) -> None:
        self._tool("list", "--list")
        self._tool("list states", "--list", "--state")
        self._tool("list types", "--list", "--type")
        for name in ("Stable", "Empty,Dead", "assigning", "nonsense"):
            self._tool(f"list state {name}", "--list", "--state", name)
        for name in ("consumer", "classic", "nonsense"):
            self._tool(f"list type {name}", "--list", "--type", name)
        self._tool("list both", "--list", "--state", "Stable", "--type", "consumer")

    def _descriptions(self, name: str) -> None:
        for part in ((), ("--offsets",), ("--members",), ("--state",)):
            for verbose in ((), ("--verbose",)):
                words = (*part, *verbose)
                self._tool(" ".join((name, "describe", *words)), "--describe", "--group", GROUP, *words)
        self._tool(f"{name} describe all", "--describe", "--all-groups", "--state")
        self._tool(f"{name} describe another", "--describe", "--group", "unknown")

    def _without_members(self) -> None:
        """The static member has left for a while: an administrator removes it."""
        self._descriptions("one static member is away")
        self.steps["removed"] = 0, [self._removed("place-1"), self._removed("place-1")]
        self._descriptions("empty")
        for name, words in RESETS.items():
            for run in ("--dry-run", "--execute"):
                self._tool(f"reset {name} {run}", "--reset-offsets", "--group", GROUP, "--topic", TOPIC, *words, run)
        partial = ("--topic", f"{TOPIC}:0,2", "--to-offset", "3", "--execute")
        self._tool("reset two partitions", "--reset-offsets", "--group", GROUP, *partial)
        self._tool("offsets after resets", "--describe", "--group", GROUP)
        to_current = ("--reset-offsets", "--group", GROUP, "--all-topics", "--to-current", "--export")
        exported = self._tool("export", *to_current)
        plan = self._folder / "plan.csv"
        offsets = [line.rsplit(",", 1) for line in exported if line.count(",") == 2]
        plan.write_text("".join(f"{place},{int(offset) + 1}\n" for place, offset in offsets))
        self._tool("from a file", "--reset-offsets", "--group", GROUP, "--from-file", str(plan), "--execute")
        self._tool("offsets after the file", "--describe", "--group", GROUP, "--offsets")
        self._tool(
            "delete offsets of two topics", "--delete-offsets", "--group", GROUP, "--topic", TOPIC, "--topic", "gone"
        )
        self._tool("delete offsets of one partition", "--delete-offsets", "--group", GROUP, "--topic", f"{TOPIC}:1")
        self._tool("offsets after the deletion", "--describe", "--group", GROUP)
        self._tool("delete", "--delete", "--group", GROUP, "--group", "unknown")
        self._tool("list after the deletion", "--list")

    def _with_a_pattern(self) -> None:
        with self._member(PATTERN_GROUP, client_id="pattern") as member:
            jvm = self._machine.jvm
            member.java.subscribe(jvm.org.apache.kafka.clients.consumer.SubscriptionPattern(f"{TOPIC}(-.*)?"))
            self._await("both topics match", lambda: len(member.assignment) == 2 * PARTITIONS, member)
            self.steps["matches"] = 0, member.assignment
            self._tool("describe a pattern", "--describe", "--group", PATTERN_GROUP, "--members", "--verbose")
            member.java.unsubscribe()
            member.java.subscribe([OTHER_TOPIC])
            self._await("one topic is named", lambda: len(member.assignment) == PARTITIONS, member)
            self.steps["names"] = 0, member.assignment

    def _with_both_protocols(self) -> None:
        """A classic group becomes a consumer group, and a classic one again."""
        with self._member(MIXED_GROUP, client_id="old", **CLASSIC) as old:
            old.java.subscribe([TOPIC])
            self._await("it has all", lambda: len(old.assignment) == PARTITIONS, old)
            self._describe_mixed("classic")
            with self._member(MIXED_GROUP, client_id="new") as new:
                new.java.subscribe([TOPIC])
                pair, each_half = (old, new), [PARTITIONS // 2] * 2
                self._await("the two have half", lambda: [len(each.assignment) for each in pair] == each_half, *pair)
                self._describe_mixed("mixed")
            self._await("it has all again", lambda: len(old.assignment) == PARTITIONS, old)
            self._describe_mixed("classic again")

    def _describe_mixed(self, name: str) -> None:
        self._tool(f"{name} types", "--list", "--type", "--state")
        for words in (("--members", "--verbose"), ("--state",), ("--offsets",)):
            self._tool(f"{name} describe {words[0]}", "--describe", "--group", MIXED_GROUP, *words)

    def _expressions(self) -> None:
        for expression in ("orders.*", "(", r"(a)\1"):
            self._tool(f"validate {expression}", "--validate-regex", expression, needs_server=False)

    # Parts of steps

    @contextmanager
    def _member(self, group: str, **config: str) -> Iterator[_Member]:
        member = _Member(self._machine, self._bootstrap, group, **config)
        try:
            yield member
        finally:
            member.java.close()

    def _await(self, awaited: str, condition: Any, *members: _Member) -> None:
        deadline_s = time.monotonic() + TIMEOUT_S
        while not condition():
            assert time.monotonic() < deadline_s, f"{awaited}: {[member.assignment for member in members]}"
            for member in members:
                member.poll()

    def _removed(self, instance_id: str) -> str:
        """The result of removing a static member, as the Java admin client says it."""
        clients = self._machine.jvm.org.apache.kafka.clients.admin
        properties = self._machine.jvm.java.util.Properties()
        properties.put("bootstrap.servers", self._bootstrap)
        admin = clients.AdminClient.create(properties)
        try:
            member = clients.MemberToRemove(instance_id)
            options = clients.RemoveMembersFromConsumerGroupOptions({member})
            result = admin.removeMembersFromConsumerGroup(GROUP, options).memberResult(member)
            result.get()
        except Py4JJavaError as error:
            return str(error.java_exception.getCause().getClass().getSimpleName())
        else:
            return "removed"
        finally:
            admin.close()

    def _tool(self, name: str, *words: str, needs_server: bool = True) -> list[str]:
        server = ("--bootstrap-server", self._bootstrap) if needs_server else ()
        done = self._machine.tool(CONSUMER_GROUPS, *server, *words, code=None)
        lines = [self._normal(line) for line in done.lines]
        self.steps[name] = done.code, sorted(lines)
        return done.lines

    def _normal(self, line: str) -> str:
        """A line with one blank between columns, without what differs from run to run: random ids and ports."""
        line = RANDOM_ID.sub("ID", line.replace(self._bootstrap, "HOST:PORT"))
        return " ".join(line.split())


def _new_topic(bootstrap: str, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(TIMEOUT_S)
    producer = Producer({"bootstrap.servers": bootstrap})
    for partition in range(PARTITIONS):
        for number in range(RECORDS):
            producer.produce(name, f"{partition} {number}", partition=partition)
    assert producer.flush(TIMEOUT_S) == 0
