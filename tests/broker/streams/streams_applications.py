"""Applications of Kafka Streams that tests drive from Python: they count records by key."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.broker.java import JavaMachine, launch
from tools.kafka_streams import streams_class_path

STATE_TIMEOUT_S = 240
CLOSE_TIMEOUT_S = 10


class StreamsMachine:
    """One JVM for applications; `tool` of `machine` runs Kafka's tools in it."""

    def __init__(self, folder: Path) -> None:
        self.machine: JavaMachine = launch(streams_class_path)
        self._folder = folder
        self._count = 0

    def instance(
        self, bootstrap: str, application: str, topics: tuple[str, str] = ("text", "out"), **config: object
    ) -> "Instance":
        """A started instance of an application that counts records of the first topic into the second."""
        self._count += 1
        state = self._folder / f"state-{self._count}"
        return Instance(self.machine.jvm, bootstrap, application, topics, state, **config)

    @contextmanager
    def admin(self, bootstrap: str) -> Iterator[Any]:
        """Kafka's Admin client."""
        properties = self.machine.jvm.java.util.Properties()
        properties.put("bootstrap.servers", bootstrap)
        admin = self.machine.jvm.org.apache.kafka.clients.admin.Admin.create(properties)
        try:
            yield admin
        finally:
            admin.close()

    def settled(self, bootstrap: str, group: str, members: int) -> dict[str, Any]:
        """State, epochs and tasks of a group by the Admin client, once the group is stable with so many members."""
        deadline_s = time.monotonic() + STATE_TIMEOUT_S
        with self.admin(bootstrap) as admin:
            while True:
                described = admin.describeStreamsGroups([group]).all().get()[group]
                state = str(described.groupState().toString())
                if state == "Stable" and len(described.members()) == members:
                    break
                assert time.monotonic() < deadline_s, (state, len(described.members()))
                time.sleep(0.1)
        return {
            "state": state.upper(),
            "epochs": (described.groupEpoch(), described.targetAssignmentEpoch()),
            "members": {each.memberId(): _member(each) for each in described.members()},
        }

    def end(self) -> None:
        """End the JVM."""
        self.machine.end()


def _member(described: Any) -> dict[str, Any]:
    assignment = described.assignment()
    return {
        "epoch": described.memberEpoch(),
        "process": described.processId(),
        "ACTIVE": _tasks(assignment.activeTasks()),
        "STANDBY": _tasks(assignment.standbyTasks()),
    }


def _tasks(described: Any) -> list[tuple[str, int]]:
    return sorted((each.subtopologyId(), int(number)) for each in described for number in each.partitions())


class Instance:
    """One instance: counts by key behind a repartition topic, in a store with a changelog."""

    def __init__(
        self, jvm: Any, bootstrap: str, application: str, topics: tuple[str, str], state: Path, **config: object
    ) -> None:
        serde = "org.apache.kafka.common.serialization.Serdes$StringSerde"
        settings = {
            "application.id": application,
            "bootstrap.servers": bootstrap,
            "group.protocol": "streams",
            "default.key.serde": serde,
            "default.value.serde": serde,
            "commit.interval.ms": 100,
            "statestore.cache.max.bytes": 0,
            "state.dir": state,
        } | {name.replace("_", "."): value for name, value in config.items()}
        properties = jvm.java.util.Properties()
        for name, value in settings.items():
            properties.put(name, str(value))
        self.java = jvm.org.apache.kafka.streams.KafkaStreams(_counting(jvm, *topics), properties)
        self._jvm = jvm
        self.java.start()

    @property
    def state(self) -> str:
        """The state's name, as RUNNING."""
        return str(self.java.state().name())

    def running(self) -> "Instance":
        """The instance once it runs with all its tasks."""
        deadline_s = time.monotonic() + STATE_TIMEOUT_S
        while self.state != "RUNNING":
            assert time.monotonic() < deadline_s, self.state
            assert self.state != "ERROR"
            time.sleep(0.05)
        return self

    def close(self) -> None:
        """Leave the group and end."""
        self.java.close(self._jvm.java.time.Duration.ofSeconds(CLOSE_TIMEOUT_S))


def _counting(jvm: Any, text: str, out: str) -> Any:
    kstream = jvm.org.apache.kafka.streams.kstream
    serdes = jvm.org.apache.kafka.common.serialization.Serdes
    builder = jvm.org.apache.kafka.streams.StreamsBuilder()
    repartitioned = getattr(kstream.Repartitioned, "as")("counts")
    stored = getattr(kstream.Materialized, "as")("counts")
    counts = builder.stream(text).repartition(repartitioned).groupByKey().count(stored)
    counts.toStream().to(out, getattr(kstream.Produced, "with")(serdes.String(), serdes.Long()))
    return builder.build()


@contextmanager
def streams_machine(folder: Path) -> Iterator[StreamsMachine]:
    """A JVM for applications, ended at the end; their state lies in `folder`."""
    machine = StreamsMachine(folder)
    try:
        yield machine
    finally:
        machine.end()
