"""Kafka's own command-line tools against a broker, by their Java classes: one JVM runs those of a module."""

import subprocess

import pytest

from state_model.errors import SharelensError
from tests.broker.java import TOOL_TIMEOUT_S, Done, java_machine
from tools.kafka_tools import tool_command

ACLS = "org.apache.kafka.tools.AclCommand"
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
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"
DELETE_RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"
PRODUCER_PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
DUMP_LOG_SEGMENTS = "org.apache.kafka.tools.DumpLogSegments"

TIMEOUT_S = TOOL_TIMEOUT_S


def kafka_tool(main_class: str, *arguments: str, timeout_s: float = TIMEOUT_S, code: int | None = 0) -> Done:
    """Run a tool in the JVM of this module to its end, which must have the exit code `code` (None: any)."""
    return java_machine().tool(main_class, *arguments, timeout_s=timeout_s, code=code)


def kafka_process(main_class: str, *arguments: str, stdin: str = "") -> Done:
    """Run a tool as a process of its own, as those need it that read their standard input or keep counts in classes.

    The test is skipped, with the reason in a line, where Java or the jars can't be had.
    """
    try:
        command = tool_command(main_class, *arguments)
    except SharelensError as error:
        pytest.skip(f"Kafka's tools: {error}")
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    # Without a configuration of theirs, the tools' logging says so in one line on standard error.
    assert done.returncode == 0, f"{main_class} ended with {done.returncode}: {done.stdout}\n{done.stderr}"
    return Done(code=done.returncode, out=done.stdout, err=done.stderr)
