"""An observer of a cluster with an authorizer: the entries in the docs suffice, and each of them is needed."""

import json
import re
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sharelens.broker.security.authorization.entries import AclEntry
from sharelens.broker.storage.catalog import Catalog
from sharelens.cli import main
from tests.broker import running
from tests.broker.kafka_tools import ACLS, kafka_tool
from tests.broker.live.test_live import CHECKPOINT_S, PAGE, SETTINGS, outcome, without_places
from tests.broker.running import RunningBroker
from tests.broker.security.test_acls import AUTHORIZER
from tests.broker.share_clients import new_share_group, share_consumer, work
from tests.broker.test_overview import RECORDS, filled

pytestmark = pytest.mark.components

QUESTIONS = ("state", "lag", "groups", "overview", "audit", "poison", "status")
AUTHORIZED = SETTINGS | {"authorizer_class_name": AUTHORIZER}


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log directory of a broker with a share group and the entries of the docs for User:ANONYMOUS."""
    folder = tmp_path_factory.mktemp("observed") / "log"
    broker = running.start(folder, **AUTHORIZED, super_users="User:ANONYMOUS")
    group = new_share_group(broker)
    with share_consumer(broker, group, filled(broker)) as consumer:
        work(consumer, lambda message: outcome(message.offset()), lambda messages: len(messages) >= RECORDS)
    for command in documented_entries():
        kafka_tool(ACLS, *command, "--bootstrap-server", broker.bootstrap)
    time.sleep(2 * CHECKPOINT_S)
    assert broker.stop() == 0
    return folder


def documented_entries() -> list[list[str]]:
    """The arguments of kafka-acls in the docs, for the user that every client of the tests is."""
    (block,) = re.findall(r"```sh\nACLS=\"(.*?)```", PAGE.read_text(), re.DOTALL)
    first, *lines = block.splitlines()
    shared = first.rstrip('"').replace("User:observer", "User:ANONYMOUS").split()[5:]
    commands = [[*shared, *shlex.split(line.removeprefix("$ACLS"))] for line in lines]
    assert len(commands) == 7
    return commands


@contextmanager
def observed(log_dir: Path, *without: str) -> Iterator[RunningBroker]:
    """The broker with the entries of the docs, but for those that `OPERATION TYPE NAME` names."""
    catalog = Catalog(log_dir)
    entries = catalog.acls
    remaining_entries = [entry for entry in entries if described(entry) not in without]
    assert len(entries) - len(remaining_entries) == len(without)
    catalog.set_acls(remaining_entries)
    broker = running.start(log_dir, **AUTHORIZED)
    try:
        yield broker
    finally:
        assert broker.stop() == 0
        Catalog(log_dir).set_acls(entries)


def described(entry: AclEntry) -> str:
    return f"{entry.operation.name} {entry.resource_type.name.lower()} {entry.name}"


def json_answer(capsys: pytest.CaptureFixture[str], question: str, *source: str) -> Any:
    capsys.readouterr()
    code = main([*question.split(), *source, "--output", "json"])
    done = capsys.readouterr()
    assert code in (0, 3), done.err
    return json.loads(done.out)


def test_the_documented_entries_suffice_for_every_question(log_dir, capsys):
    with observed(log_dir) as broker:
        of_cluster = {each: json_answer(capsys, each, "--bootstrap-server", broker.bootstrap) for each in QUESTIONS}
        assert [row["lag"] for row in of_cluster["lag"]] == [RECORDS // 2]
        assert of_cluster["state"]
        for question in ("state", "groups", "status"):
            of_directory = json_answer(capsys, question, "--log-dir", str(log_dir))
            assert without_places(of_cluster[question]) == without_places(of_directory)
        assert "configuration" not in str(of_cluster["audit"]["not_tested"])
        assert [row["delivery_count_limit_source"] for row in of_cluster["poison"]] == ["default_config"]


@pytest.mark.parametrize("topic", ["__share_group_state", "__consumer_offsets"])
def test_a_missing_right_to_a_log_is_one_line_that_names_right_and_topic(log_dir, topic, capsys):
    with observed(log_dir, f"READ topic {topic}") as broker:
        assert main(["state", "--bootstrap-server", broker.bootstrap]) == 1
    line = capsys.readouterr().err.splitlines()[-1]
    assert f"no right to read topic {topic}" in line
    assert "READ" in line
    assert "kafka-acls.sh" in line


def test_records_of_user_topics_need_a_right_of_their_own(log_dir, capsys):
    with observed(log_dir) as broker:
        assert main(["state", "--bootstrap-server", broker.bootstrap, "--user-topics", "all"]) == 1
    assert "no right to read topic" in capsys.readouterr().err.splitlines()[-1]


def test_without_read_on_a_user_topic_its_ages_are_unknown_and_a_line_says_so(log_dir, capsys):
    with observed(log_dir) as broker:
        words = ("stalled", "--bootstrap-server", broker.bootstrap)
        assert main([*words]) == 0
        assert "incomplete: no right to read t-" in capsys.readouterr().err
        assert main([*words, "--user-topics", "none"]) == 0
        assert "no right" not in capsys.readouterr().err


def test_without_describe_on_topics_the_lag_is_unknown_and_a_line_says_so(log_dir, capsys):
    with observed(log_dir, "DESCRIBE topic *") as broker:
        words = ("lag", "--bootstrap-server", broker.bootstrap)
        assert [row["lag"] for row in json_answer(capsys, *words)] == [None]
        assert main([*words]) == 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "does not list" in line]
    assert "state of 1 topic (" in line
    assert line.endswith("--operation Describe --topic NAME")


def test_a_run_without_a_right_to_topics_names_the_right(log_dir, tmp_path, capsys):
    with observed(log_dir, "DESCRIBE topic *") as broker:
        assert main(["run", "--lake", str(tmp_path / "lake"), "--bootstrap-server", broker.bootstrap]) == 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "does not list" in line]
    assert "state of 1 topic (" in line
    assert line.endswith("--operation Describe --topic NAME")


def test_a_topic_that_one_may_not_describe_is_named_with_its_right(log_dir, capsys):
    with observed(log_dir, "DESCRIBE topic *") as broker:
        assert main(["lag", "--topic", "orders", "--bootstrap-server", broker.bootstrap]) == 1
    assert "no right to describe topic orders; add it with" in capsys.readouterr().err.splitlines()[-1]


def test_the_doctor_fails_for_no_right_that_ages_alone_need(log_dir, capsys):
    with observed(log_dir) as broker:
        checks = {
            check["check"]: check for check in json_answer(capsys, "doctor", "--bootstrap-server", broker.bootstrap)
        }
    assert checks["read-topics"]["ok"]
    assert "ages of their waiting records are unknown" in checks["read-topics"]["detail"]
    assert checks["read-topics"]["what_to_do"].endswith("--operation Read --topic NAME")


@pytest.mark.parametrize(
    ("rights", "text", "end"),
    [
        (("DESCRIBE cluster kafka-cluster", "DESCRIBE group *"), "state of 1 group (g-", "Describe --group NAME"),
        (("DESCRIBE_CONFIGS group *",), "no right to the settings of 1 group (g-", "DescribeConfigs --group NAME"),
    ],
)
def test_without_a_right_to_see_groups_the_settings_of_the_broker_stand_for_theirs(log_dir, rights, text, end, capsys):
    with observed(log_dir, *rights) as broker:
        words = ("poison", "--bootstrap-server", broker.bootstrap)
        (record,) = json_answer(capsys, *words)
        assert main([*words]) == 0
    assert record["delivery_count_limit_source"] == "broker_config"
    (line,) = [line for line in capsys.readouterr().err.splitlines() if text in line]
    assert line.endswith(end)


def test_without_a_right_to_the_settings_of_brokers_the_audit_leaves_rules_out(log_dir, capsys):
    with observed(log_dir, "DESCRIBE_CONFIGS cluster kafka-cluster") as broker:
        untested = json_answer(capsys, "audit", "--bootstrap-server", broker.bootstrap)["not_tested"]
    assert "configuration" in str(untested)


@pytest.mark.parametrize(
    ("rights", "line", "warning"),
    [
        ((), "1 of 1 share partition the same", ""),
        (("DESCRIBE group *",), "not compared with the coordinators: they name no group; add DESCRIBE on groups", ""),
        (("DESCRIBE cluster kafka-cluster",), "1 of 1 share partition the same", "NAME --operation Describe --cluster"),
    ],
)
def test_coordinators_are_asked_by_who_may_describe_groups(log_dir, rights, line, warning, capsys):
    with observed(log_dir, *rights) as broker:
        assert main(["state", "--bootstrap-server", broker.bootstrap]) == 0
    printed = capsys.readouterr()
    assert line in printed.out
    assert warning in printed.err
