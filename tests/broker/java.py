"""A Java machine that tests drive from Python: Kafka's Java share consumer, and many runs of its tools for one start.

py4j's gateway runs in it, so that no compiler is needed.
"""

import functools
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JJavaError

from state_model.errors import SharelensError
from tools.java_gateway import end_gateway, open_gateway
from tools.kafka_tools import class_path

TOOL_TIMEOUT_S = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """How a tool ended. `out` is its standard output, `err` the rest."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """What it printed, without empty lines."""
        return [line for line in self.out.splitlines() if line.strip()]


class _Exit:
    """Stands in for the end of the process: a tool that ends gets an exception instead, which it may swallow."""

    def __init__(self) -> None:
        self.code: int | None = None

    def execute(self, code: int, _message: str | None) -> None:
        if self.code is None:
            self.code = code
        raise RuntimeError("the tool ends here")

    class Java:
        implements = ["org.apache.kafka.common.utils.Exit$Procedure"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaRecord:
    """A record as the Java consumer gave it; `record` is the Java object."""

    topic: str
    partition: int
    offset: int
    delivery_count: int
    value: str | None
    record: Any

    @property
    def place(self) -> tuple[int, int]:
        """Partition and offset."""
        return self.partition, self.offset


class JavaShareConsumer:
    """A KafkaShareConsumer of strings."""

    def __init__(self, jvm: Any, bootstrap: str, group: str, **config: object) -> None:
        properties = jvm.java.util.Properties()
        text = "org.apache.kafka.common.serialization.StringDeserializer"
        settings = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "share.acknowledgement.mode": "explicit",
            "key.deserializer": text,
            "value.deserializer": text,
        } | {name.replace("_", "."): value for name, value in config.items()}
        for name, value in settings.items():
            properties.put(name, str(value))
        self._jvm = jvm
        self.java = jvm.org.apache.kafka.clients.consumer.KafkaShareConsumer(properties)
        self._type = jvm.org.apache.kafka.clients.consumer.AcknowledgeType

    def subscribe(self, *topics: str) -> None:
        """Subscribe to topics by name."""
        self.java.subscribe(list(topics))

    def poll(self, timeout_ms: int = 500) -> list[JavaRecord]:
        """The records of one poll."""
        return [
            JavaRecord(
                topic=record.topic(), partition=record.partition(), offset=record.offset(),
                delivery_count=int(record.deliveryCount().orElse(0)), value=record.value(), record=record,
            )
            for record in self.java.poll(self._jvm.java.time.Duration.ofMillis(timeout_ms)).iterator()
        ]  # fmt: skip

    def acknowledge(self, records: Sequence[JavaRecord], kind: str = "ACCEPT") -> None:
        """Acknowledge records as ACCEPT, RELEASE, REJECT or RENEW; sent with the next poll or commit."""
        for each in records:
            self.java.acknowledge(each.record, self._type.valueOf(kind))

    def commit(self) -> dict[tuple[str, int], str | None]:
        """Send what was acknowledged; the error's class by topic and partition, None where it was taken."""
        return {
            (at.topicPartition().topic(), at.topicPartition().partition()): (
                error.get().getClass().getSimpleName() if error.isPresent() else None
            )
            for at, error in self.java.commitSync().items()
        }

    def close(self) -> None:
        """Send what was acknowledged and leave."""
        self.java.close()


class JavaMachine:
    """One JVM with Kafka's clients and tools."""

    def __init__(self, gateway: JavaGateway, process: "subprocess.Popen[bytes]") -> None:
        self.jvm = gateway.jvm
        self._gateway = gateway
        self._process = process
        self._exit = _Exit()
        self.jvm.org.apache.kafka.common.utils.Exit.setExitProcedure(self._exit)

    @contextmanager
    def share_consumer(self, bootstrap: str, group: str, *topics: str, **config: object) -> Iterator[JavaShareConsumer]:
        """A subscribed member, closed at the end; `config` with `_` for `.`."""
        consumer = JavaShareConsumer(self.jvm, bootstrap, group, **config)
        try:
            consumer.subscribe(*topics)
            yield consumer
        finally:
            consumer.close()

    def tool(self, main_class: str, *arguments: str, timeout_s: float = TOOL_TIMEOUT_S, code: int | None = 0) -> Done:
        """Run a tool to its end, which must have the exit code `code` (None: any); one that hangs ends the machine."""
        watch = threading.Timer(timeout_s, self._give_up)
        watch.start()
        try:
            done = self._answer(main_class, arguments)
        finally:
            watch.cancel()
        assert code is None or done.code == code, f"{main_class} ended with {done.code}: {done.out}\n{done.err}"
        return done

    def _give_up(self) -> None:
        java_machine.cache_clear()
        self._process.kill()

    def _answer(self, main_class: str, arguments: Sequence[str]) -> Done:
        system, io = self.jvm.java.lang.System, self.jvm.java.io
        before = system.out, system.err
        out, err = io.ByteArrayOutputStream(), io.ByteArrayOutputStream()
        system.setOut(io.PrintStream(out, True))
        system.setErr(io.PrintStream(err, True))
        try:
            ended = self._run(main_class, arguments)
        finally:
            system.setOut(before[0])
            system.setErr(before[1])
        return Done(code=ended, out=out.toString(), err=err.toString())

    def _run(self, main_class: str, arguments: Sequence[str]) -> int:
        main = self.jvm
        for name in main_class.split("."):
            main = getattr(main, name)
        self._exit.code = None
        try:
            main.main(self._strings(arguments))
        except Py4JJavaError:
            if self._exit.code is None:
                raise
        return self._exit.code or 0

    def _strings(self, texts: Sequence[str]) -> Any:
        text = self.jvm.java.lang.Class.forName("java.lang.String")
        array = self.jvm.java.lang.reflect.Array.newInstance(text, len(texts))
        for index, each in enumerate(texts):
            array[index] = each
        return array

    def end(self) -> None:
        """Ends the machine."""
        end_gateway(self._gateway, self._process)


@functools.cache
def java_machine() -> JavaMachine:
    """The JVM with Kafka's jars, started when it is first asked for, until `end_java_machine`."""
    return launch(class_path)


def launch(classes: Callable[[], str]) -> JavaMachine:
    """A JVM with the classes of a class path, which the caller ends.

    The test is skipped, with the reason in a line, where it can't be had.
    """
    try:
        gateway, process = open_gateway(classes())
    except SharelensError as error:
        pytest.skip(f"Kafka's Java clients: {error}")
    return JavaMachine(gateway, process)


def end_java_machine() -> None:
    """Ends the JVM, if there is one; who asks for it then gets a new one."""
    if java_machine.cache_info().currsize:
        machine = java_machine()
        java_machine.cache_clear()
        machine.end()
