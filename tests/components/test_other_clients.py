"""Clients of other families drive a light broker. Each runs one plan, and what it reports is what Kafka would give it.

A program below `clients` takes the plan as JSON and prints facts as one JSON object. Facts for which a client has no
call are left out; all others are the same for every client. What it produced is read once more from the log.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from sharelens.broker.storage import record_batch
from sharelens.kafka_log.codecs import NAMES
from tests.broker import running
from tests.broker.running import RunningBroker
from tests.depths import in_soak
from tests.processes.go_programs import go_environment

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "clients"
TOOLS = ROOT / ".venv" / "tools"
NODE_PACKAGES = TOOLS / "node-clients" / "node_modules"
PROGRAM_S, BUILD_S = 120, 900
TOPIC_ALREADY_EXISTS, ELECTION_NOT_NEEDED = 36, 84
DEFAULT_MAX_MESSAGE_BYTES = "1048588"
BATCH_RECORDS, MARKER_RECORDS = 8, 1
TRANSACTIONS = {"committed": 5, "aborted": 7}
"""How each ends -> the offset that it commits for a group."""
SHARE_FACTS = frozenset(
    {"share_deliveries", "share_refused_acknowledgements", "share_group_state", "share_group_members", "share_lag"}
)
"""What franz-go alone reports: no other client here has share groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A client's program. `command` skips the test where the runtime is missing. It has no call for `missing_facts`."""

    name: str
    command: Callable[[], list[str]]
    codecs: tuple[str, ...] = ("none", "gzip", "snappy", "lz4", "zstd")
    missing_facts: frozenset[str] = frozenset()


def _aiokafka() -> list[str]:
    pytest.importorskip("aiokafka", reason="no aiokafka here; `make setup` installs it")
    return [sys.executable, str(PROGRAMS / "aiokafka_client.py")]


def _node(package: str, program: str) -> list[str]:
    node = shutil.which("node")
    if node is None or not (NODE_PACKAGES / package / "package.json").is_file():
        pytest.skip(f"no {package} here; `make node-clients` installs it, with npm")
    return [node, str(PROGRAMS / program)]


def _kafkajs() -> list[str]:
    return _node("kafkajs", "kafkajs_client.js")


def _platformatic() -> list[str]:
    return _node("@platformatic/kafka", "platformatic_client.mjs")


def _go(folder: str) -> list[str]:
    """The program that a Go module builds; kept, so that a second run builds what changed."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("no Go here; install the version that go.mod names, or a newer one")
    module, program = PROGRAMS / folder, TOOLS / "go-clients" / folder
    fetched = subprocess.run(
        [go, "mod", "download"], cwd=module, env=go_environment(), capture_output=True, text=True, timeout=BUILD_S
    )
    if fetched.returncode:
        pytest.skip(f"Go can't build {folder}: {fetched.stderr.strip().splitlines()[-1:]}")
    subprocess.run(
        [go, "build", "-o", str(program), "."], cwd=module, env=go_environment(), check=True, timeout=BUILD_S
    )
    return [str(program)]


AIOKAFKA = Client(
    name="aiokafka",
    command=_aiokafka,
    missing_facts=SHARE_FACTS
    | {"incremental_configurations", "election_error", "log_bytes", "is_group_listed_after_deletion"},
)
KAFKAJS = Client(
    name="kafkajs",
    command=_kafkajs,
    codecs=("none", "gzip"),
    missing_facts=SHARE_FACTS | {"incremental_configurations", "election_error", "log_bytes", "low_watermark"},
)
PLATFORMATIC = Client(
    name="platformatic",
    command=_platformatic,
    codecs=("none", "gzip", "snappy", "lz4"),  # zstd takes a newer Node than Debian's
    missing_facts=SHARE_FACTS | {"election_error"},
)
FRANZ_GO = Client(name="franz-go", command=lambda: _go("franz_go"))
SARAMA = Client(name="sarama", command=lambda: _go("sarama"), missing_facts=SHARE_FACTS | {"low_watermark"})


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker for all clients; each has topics and groups with its name."""
    broker = running.start(
        tmp_path_factory.mktemp("broker") / "log", group_initial_rebalance_delay_ms=0, offsets_topic_num_partitions=4
    )
    yield broker
    assert broker.stop() == 0, broker.problems.read_text()[-2000:]


@pytest.mark.parametrize(
    "client", [AIOKAFKA, KAFKAJS, PLATFORMATIC, *in_soak(FRANZ_GO, SARAMA)], ids=lambda client: client.name
)
def test_a_client_gets_from_the_broker_what_kafka_gives_it(broker, client):
    program = client.command()
    plan = _plan(client, broker)
    facts = _run(program, plan)
    log = broker.log_dir / f"{plan['records_topic']}-0"
    expected = _expected_facts(plan) | {"log_bytes": sum(path.stat().st_size for path in log.glob("*.log"))}
    assert facts == {name: value for name, value in expected.items() if name not in client.missing_facts}
    assert _log_facts(log) == _expected_log_facts(plan)


def _run(program: list[str], plan: dict[str, Any]) -> dict[str, Any]:
    """What a program reports. Deliveries are in no certain order: a released record may come before the next one."""
    environment = os.environ | {"NODE_PATH": str(NODE_PACKAGES)}
    done = subprocess.run(
        [*program, json.dumps(plan)], env=environment, capture_output=True, text=True, timeout=PROGRAM_S
    )
    assert done.returncode == 0, f"{program[-1]} ended with {done.returncode}: {done.stderr[-4000:]}"
    facts: dict[str, Any] = json.loads(done.stdout)
    if "share_deliveries" in facts:
        facts["share_deliveries"].sort()
    return facts


def _plan(client: Client, broker: RunningBroker) -> dict[str, Any]:
    """What a client does: it sends values by codec or label in their order, `aborted` in a transaction that aborts."""
    labels = [*client.codecs, "idempotent", *TRANSACTIONS]
    values = {label: [f"{label} {number}" for number in range(BATCH_RECORDS)] for label in labels}
    return {
        "bootstrap": broker.bootstrap,
        "topic": f"{client.name}-settings",
        "partitions": 2,
        "grown_partitions": 5,
        "configurations": {
            "created": {"retention.ms": "3600000", "max.message.bytes": "100000"},
            "incremental": {"retention.ms": "1800000"},
            "replaced": {"retention.ms": "7200000"},
        },
        "records_topic": f"{client.name}-records",
        "group": f"{client.name}-readers",
        "codecs": client.codecs,
        "header": ["padding", "." * 300],  # makes a batch worth compressing: franz-go sends the shorter form
        "values": values | {"last": ["last"]},
        "transactional_id": f"{client.name}-writer",
        "transactional_group": f"{client.name}-sources",
        "transactional_offsets": TRANSACTIONS,
        "delete_before": 4,
        "share": {
            "topic": f"{client.name}-shared",
            "group": f"{client.name}-sharers",
            "values": [f"shared {number}" for number in range(BATCH_RECORDS)],
            "released": [2, 3],
            "rejected": [5],
        },
    }


def _expected_facts(plan: dict[str, Any]) -> dict[str, Any]:
    """What every client reports, as far as it has a call for it."""
    values, configurations = plan["values"], plan["configurations"]
    lengths = [len(values[label]) + MARKER_RECORDS * (label in TRANSACTIONS) for label in values]
    end_offsets = dict(zip(values, accumulate(lengths), strict=True))
    committed_labels = [label for label in values if label != "aborted"]
    return {
        "first_create_error": 0,
        "second_create_error": TOPIC_ALREADY_EXISTS,
        "is_listed": True,
        "partitions": plan["partitions"],
        "grown_partitions": plan["grown_partitions"],
        "created_configurations": configurations["created"],
        "incremental_configurations": configurations["created"] | configurations["incremental"],
        # AlterConfigs takes the place of all: what it doesn't name has its default again.
        "replaced_configurations": {"max.message.bytes": DEFAULT_MAX_MESSAGE_BYTES} | configurations["replaced"],
        "election_error": ELECTION_NOT_NEEDED,
        "first_offsets": dict(zip(values, [0, *end_offsets.values()], strict=False)),
        "first_record": [0, "key of none 0", "none 0", [plan["header"]]],
        "read_committed": [value for label in committed_labels for value in values[label]],
        "read_uncommitted": [value for label in values for value in values[label]],
        "end_offset": end_offsets["last"],
        "group_state": "Stable",
        "group_members": 1,
        "committed_offset": end_offsets["last"],
        "transactional_offset": TRANSACTIONS["committed"],
        "is_group_listed": True,
        "low_watermark": plan["delete_before"],
        "start_offset": plan["delete_before"],
        "is_group_listed_after_deletion": False,
        "is_listed_after_deletion": False,
    } | _expected_share_facts(plan["share"])


def _expected_share_facts(share: dict[str, Any]) -> dict[str, Any]:
    """Each record is delivered once, those that the member releases once more; in the end the group is past all.

    That is its lag: a start offset is written with the acknowledgement after the one that moved it, in Kafka too.
    """
    answers = dict.fromkeys(share["released"], "release") | dict.fromkeys(share["rejected"], "reject")
    first = [[at, value, 1, answers.get(at, "accept")] for at, value in enumerate(share["values"])]
    second = [[at, share["values"][at], 2, "accept"] for at in share["released"]]
    return {
        "share_deliveries": sorted(first + second),
        "share_refused_acknowledgements": 0,
        "share_group_state": "Stable",
        "share_group_members": 1,
        "share_lag": 0,
    }


def _log_facts(log: Path) -> dict[str, Any]:
    """What the segments of a partition hold: codecs of values, who sent them as which kind of producer, and markers."""
    codecs: dict[str, str] = {}
    sequenced: list[str] = []
    transactional: list[str] = []
    are_commits: list[bool] = []
    for path in sorted(log.glob("*.log")):
        data = path.read_bytes()
        for header in record_batch.split(data):
            if header.is_control:
                marker = record_batch.parse_control(data, header)
                are_commits.append(marker is not None and marker.is_commit)
                continue
            records = record_batch.parse(data, header)
            values = [(record.value or b"").decode() for record in records]
            codecs |= dict.fromkeys(values, NAMES[header.codec])
            sequenced += values if header.producer_id >= 0 and header.base_sequence >= 0 else []
            transactional += values if header.is_transactional else []
    return {
        "codecs": codecs,
        "sequenced": sequenced,
        "transactional": transactional,
        "are_commits": are_commits,
    }


def _expected_log_facts(plan: dict[str, Any]) -> dict[str, Any]:
    """The same, as the plan wants it."""
    values = plan["values"]
    transactional = [value for label in TRANSACTIONS for value in values[label]]
    return {
        "codecs": {value: label if label in plan["codecs"] else "none" for label in values for value in values[label]},
        "sequenced": values["idempotent"] + transactional,
        "transactional": transactional,
        "are_commits": [label == "committed" for label in TRANSACTIONS],
    }
