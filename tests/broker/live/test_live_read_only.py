"""Every command on a running cluster sends requests that read, and no others: the broker counts them by API."""

import time
from collections.abc import Iterator

import click
import pytest

from sharelens.cli import main
from sharelens.cli.app import cli
from tests.broker import running
from tests.broker.running import RunningBroker
from tests.broker.share_clients import SHARE_SETTINGS, new_share_group, share_consumer
from tests.broker.test_clients import produce
from tests.broker.test_metrics import scraped
from tests.broker.test_overview import RECORDS, accept, filled
from tests.depths import in_soak

REQUESTS = "kafka_network_request_metrics_requests_total"
READ = {
    "ApiVersions",
    "DescribeCluster",
    "DescribeConfigs",
    "DescribeShareGroupOffsets",
    "Fetch",
    "FindCoordinator",
    "ListGroups",
    "ListOffsets",
    "Metadata",
    "OffsetForLeaderEpoch",
    "ShareGroupDescribe",
    "StreamsGroupDescribe",
}
WRITES = {"workload"}
"""Commands that are there to write to a cluster."""
WITHOUT_QUESTION = {"doctor", "verify"}
"""Commands that take a cluster and are no question to it."""
NEEDS_RECORDS = {"locate"}
"""Commands that refuse to answer without the records of user topics."""
PLACE = "--group {group} --topic {topic} --partition 0 --offset 3"
RANGE = "--from {from_ms} --to {to_ms}"
OPTIONS = {
    "trace": PLACE,
    "moments": "--group {group} --topic {topic} --partition 0",
    "explore": "--port 0 --idle-exit 1s",
    "diff": RANGE,
    "locate": "--topic {topic} --key x",
    "describe": "--group {group}",
    "rebalances": "--group {group}",
    "what-if": "--state-partitions 7",
    "life": "--group {group}",
    "timeline": "--group {group}",
    "metrics": "--output-file {folder}/metrics.prom",
    "evidence": f"--group {{group}} {RANGE} --case c --out {{folder}}/evidence",
    "report": "--out {folder}/report.html",
    "run": "--lake {folder}/lake",
    "ingest": "--lake {folder}/bronze",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    running_broker = running.start(tmp_path_factory.mktemp("read") / "log", "--metrics-port", "0", **SHARE_SETTINGS)
    yield running_broker
    assert running_broker.stop() == 0, running_broker.problems.read_text()[-2000:]


@pytest.fixture(scope="module")
def names(broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    group, topic = new_share_group(broker), filled(broker)
    times = []
    with share_consumer(broker, group, topic) as consumer:
        for _ in range(2):
            accept(consumer, RECORDS)
            times.append(str(time.time_ns() // 1_000_000))
            produce(broker, topic, [str(number) for number in range(RECORDS)])
        accept(consumer, RECORDS)
    folder = str(tmp_path_factory.mktemp("out"))
    return {"group": group, "topic": topic, "folder": folder, "from_ms": times[0], "to_ms": times[1]}


def commands() -> list[str]:
    """All commands that take a cluster."""
    context = click.Context(cli)
    taking = [
        name
        for name in cli.list_commands(context)
        if (command := cli.get_command(context, name)) is not None
        and any(parameter.name == "bootstrap_server" for parameter in command.params)
    ]
    assert len(taking) > 20
    return sorted(set(taking) - WRITES - WITHOUT_QUESTION)


def counts(broker: RunningBroker) -> dict[str, float]:
    address = broker.ready_line.rpartition("metrics=")[2]
    return {key[1]: value for key, value in scraped(address).items() if key[0] == REQUESTS}


@pytest.mark.one_in(9)
@pytest.mark.parametrize("user_topics", ["samples", *in_soak("all")])
@pytest.mark.parametrize("command", commands())
def test_a_command_only_reads(broker, names, command, user_topics, capsys):
    before = counts(broker)
    options = OPTIONS.get(command, "").format(**names).split()
    options = [f"{option}-{user_topics}" if names["folder"] in option else option for option in options]
    code = main([command, *options, "--bootstrap-server", broker.bootstrap, "--user-topics", user_topics])
    refused = command in NEEDS_RECORDS and user_topics != "all"
    assert code in ((2,) if refused else (0, 3)), capsys.readouterr().err
    after = counts(broker)
    requested = {name for name, count in after.items() if count > before[name]}
    assert "Fetch" in requested
    assert requested <= READ


def test_doctor_and_verify_only_read(broker, names, tmp_path, capsys):
    folder, words = str(tmp_path / "case"), ["--bootstrap-server", broker.bootstrap]
    evidence = OPTIONS["evidence"].format(**names | {"folder": str(tmp_path)}).split()[:-1]
    assert main(["evidence", *evidence, folder, *words]) in (0, 3)
    before = counts(broker)
    assert main(["verify", folder, *words]) == 0
    assert main(["doctor", *words]) == 0, capsys.readouterr().err
    assert {name for name, count in counts(broker).items() if count > before[name]} <= READ
