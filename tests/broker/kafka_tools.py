"""Kafka's own command-line tools against a broker, by their Java classes."""

import subprocess
from dataclasses import dataclass

import pytest

from state_model.errors import SharelensError
from tools.kafka_tools import tool_command

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
CONSOLE_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
CONSOLE_SHARE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
SHARE_GROUPS = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
CONSUMER_GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
FEATURES = "org.apache.kafka.tools.FeatureCommand"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
GET_OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
DELETE_RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"
PRODUCER_PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
DUMP_LOG_SEGMENTS = "org.apache.kafka.tools.DumpLogSegments"
VERIFIABLE_SHARE_CONSUMER = "org.apache.kafka.tools.VerifiableShareConsumer"

TIMEOUT_S = 60


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


def kafka_command(main_class: str, *arguments: str) -> list[str]:
    """The command of a tool; the test is skipped, with the reason in a line, where Java or the jars can't be had."""
    try:
        return tool_command(main_class, *arguments)
    except SharelensError as error:
        pytest.skip(f"Kafka's tools: {error}")


def kafka_tool(
    main_class: str, *arguments: str, stdin: str = "", timeout_s: float = TIMEOUT_S, code: int | None = 0
) -> Done:
    """Run a tool to its end, which must have the exit code `code` (None: any)."""
    done = subprocess.run(
        kafka_command(main_class, *arguments),
        input=stdin, capture_output=True, text=True, timeout=timeout_s, check=False,
    )  # fmt: skip
    # Without a configuration of theirs, the tools' logging says so in one line on standard error.
    ended = Done(code=done.returncode, out=done.stdout, err=done.stderr)
    assert code is None or ended.code == code, f"{main_class} ended with {ended.code}: {ended.out}\n{ended.err}"
    return ended
