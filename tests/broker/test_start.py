"""Starting and ending the broker, as its users do."""

import json
import re
import socket
import subprocess

import pytest

from sharelens.kafka_formats.messages.api_keys import ApiKey
from sharelens.workloads.wire import ask
from tests.broker import running
from tests.broker.forks import Fork

TIMEOUT_S = 60


def refused(log_dir, *options, **settings):
    """A start that must fail; what it says."""
    return refusal(running.words(log_dir, *options, **settings), log_dir.with_name("refusal"))


def refusal(words, problems):
    """What a command that must fail writes to stderr, which is the file `problems`."""
    problems.unlink(missing_ok=True)
    fork = Fork(words, problems)
    with fork.stdout:
        assert fork.stdout.read() == ""
    assert fork.wait(TIMEOUT_S) > 0
    text = problems.read_text()
    assert "Traceback" not in text
    return text.strip()


def test_it_says_in_one_line_that_it_is_ready_and_ends_in_order(start_broker):
    broker = start_broker(is_fork=False)
    cluster = json.loads((broker.log_dir / "sharelens.catalog.json").read_text())["cluster_id"]
    assert broker.ready_line == f"ready: {broker.bootstrap} cluster={cluster} log-dir={broker.log_dir}"
    assert re.fullmatch(r"127\.0\.0\.1:\d+", broker.bootstrap)
    assert broker.process.stdout is not None
    broker.process.terminate()
    assert broker.process.stdout.read() == ""
    assert broker.process.wait(TIMEOUT_S) == 0
    assert broker.problems.read_text() == ""
    assert (broker.log_dir / ".kafka_cleanshutdown").exists()


def test_an_idle_broker_is_small(start_broker):
    broker = start_broker(is_fork=False)
    assert broker.memory_bytes() <= 100 << 20


def test_a_second_broker_gets_neither_the_directory_nor_the_port(start_broker, tmp_path):
    broker = start_broker()
    output = refused(broker.log_dir)
    assert "is in use" in output
    assert "can't listen on" in refused(tmp_path / "other", listen=broker.bootstrap)
    assert broker.process.poll() is None


def test_a_directory_of_another_broker_is_left_alone(tmp_path):
    evidence = tmp_path / "kafka"
    (evidence / "orders-0").mkdir(parents=True)
    (evidence / "orders-0" / "00000000000000000000.log").write_bytes(b"records")
    (evidence / "meta.properties").write_text("version=1\n")
    before = sorted((path, path.stat().st_mtime_ns) for path in evidence.rglob("*"))
    assert str(evidence) in refused(evidence)
    assert sorted((path, path.stat().st_mtime_ns) for path in evidence.rglob("*")) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--set", "group.share.delivery.count.limit=11"), "takes an integer from 2 to 10"),
        (("--set", "group.share.delivery.count.limit"), "is no key=value"),
        (("--listen", "0.0.0.0:0"), "--allow-remote"),
        (("--listen", "nowhere"), "is no HOST:PORT"),
        (("--feature", "share.version=2", "--kafka-version", "4.3"), "Kafka 4.3 has levels from 0 to 1"),
        (("--feature", "share.version"), "is no feature=level"),
        (("--feature", "kraft.version=1"), "is not supported"),
        (("--config", "/does/not/exist"), "can't be read: No such file"),
    ],
)
def test_what_can_not_be_used_stops_the_start_in_one_line(tmp_path, options, message):
    output = refused(tmp_path / "log", *options)
    assert message in output
    assert "\n" not in output
    assert not (tmp_path / "log").exists()


def real_configuration(tmp_path, **changes):
    """The server.properties of a real node that is broker and controller."""
    lines = {
        "process.roles": "broker,controller",
        "node.id": "7",
        "controller.quorum.bootstrap.servers": "localhost:9093",
        "listeners": "PLAINTEXT://:0,CONTROLLER://:9093",
        "inter.broker.listener.name": "PLAINTEXT",
        "advertised.listeners": "PLAINTEXT://broker1.example:9092,CONTROLLER://broker1.example:9093",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL",
        "num.network.threads": "3",
        "log.dirs": str(tmp_path / "real-log"),
        "num.partitions": "3",
        "offsets.topic.replication.factor": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "group.share.record.lock.duration.ms": "15000",
        "no.such.key": "1",
        **changes,
    }
    path = tmp_path / "server.properties"
    path.write_text("# A real broker's.\n" + "".join(f"{key}={value}\n" for key, value in lines.items()))
    return path


def test_the_configuration_of_a_real_broker_is_accepted(tmp_path):
    command = [part for part in running.command(tmp_path) if part != str(tmp_path)]
    for option in ("--listen", "--log-dir", "127.0.0.1:0"):
        command.remove(option)
    config = real_configuration(tmp_path)
    with subprocess.Popen(
        [*command, "--config", str(config), "--set", "num.partitions=2"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready: 127.0.0.1:")
        process.terminate()
        _, output = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0
    ignored, unknown = output.splitlines()
    assert "CONTROLLER://:9093" in ignored
    assert "num.network.threads" in ignored
    assert "num.partitions" not in ignored
    assert unknown == "sharelens: unknown configuration no.such.key"
    assert "node.id=7" in (tmp_path / "real-log" / "meta.properties").read_text()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"listeners": "PLAINTEXT://:0,SSL://:9094"}, "listener SSL: the key store needs exactly one private key"),
        ({"listeners": "PLAINTEXT://broker1.example:9092"}, "--allow-remote"),
        ({"log.dirs": "/a,/b"}, "writes to one directory only"),
        ({"broker.id": "8"}, "node.id=7 and broker.id=8"),
        ({"group.share.max.size": "5000"}, "from 1 to 1000"),
    ],
)
def test_a_real_configuration_that_can_not_be_served_is_refused(tmp_path, changes, message):
    words = running.words(tmp_path / "x", "--config", str(real_configuration(tmp_path, **changes)), listen=None)
    for option in ("--log-dir", str(tmp_path / "x")):
        words.remove(option)
    assert message in refusal(words, tmp_path / "refusal")


def test_with_the_switch_it_listens_on_all_addresses_and_advertises_the_configured_one(start_broker, tmp_path):
    assert "set advertised.listeners" in refused(tmp_path / "log", "--allow-remote", listen="0.0.0.0:0")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    output = f"PLAINTEXT://localhost:{port}"
    broker = start_broker("--allow-remote", listen=f"0.0.0.0:{port}", advertised_listeners=output)
    answer = ask(f"127.0.0.1:{port}", ApiKey.METADATA, 12, {"topics": []})
    assert [(each.host, each.port) for each in answer.brokers] == [("localhost", port)]
    assert broker.stop() == 0


def test_clients_learn_the_address_of_the_listener_that_they_asked(start_broker, tmp_path):
    config = tmp_path / "two.properties"
    config.write_text(
        "listeners=INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0\n"
        "listener.security.protocol.map=INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT\n"
        "advertised.listeners=INSIDE://127.0.0.1:1111,OUTSIDE://localhost:2222\n"
    )
    broker = start_broker("--config", str(config), listen=None)
    inside, outside = broker.ready_line.split()[1].split(",")
    for bootstrap, expected in ((inside, ("127.0.0.1", 1111)), (outside, ("localhost", 2222))):
        (of_metadata,) = ask(bootstrap, ApiKey.METADATA, 12, {"topics": []}).brokers
        (of_cluster,) = ask(bootstrap, ApiKey.DESCRIBE_CLUSTER, 0, {}).brokers
        keys = {"key_type": 0, "coordinator_keys": ["g"]}
        (coordinator,) = ask(bootstrap, ApiKey.FIND_COORDINATOR, 4, keys).coordinators
        assert {(each.host, each.port) for each in (of_metadata, of_cluster, coordinator)} == {expected}
