"""Users of SCRAM: recorded calls get the answers of Kafka 4.3.1, and what was changed survives a restart."""

import base64
import json
from pathlib import Path

import pytest

from sharelens.broker.errors import ConfigError
from sharelens.broker.security.scram_options import read_scram_users
from tests.broker_parts.dispatched_broker import DispatchedBroker, of_json

CALLS = [json.loads(line) for line in (Path(__file__).parent / "scram_calls.jsonl").read_text().splitlines()]
DESCRIBE, ALTER, HANDSHAKE, AUTHENTICATE, QUOTAS = 50, 51, 17, 36, 48
RECORDED = {"salt": b"salt", "salted_password": b"pw"}


@pytest.fixture
def broker(tmp_path):
    """Has the user of the recorded calls."""
    served = DispatchedBroker(tmp_path / "log")
    (answer,) = served.call(ALTER, 0, deletions=[], upsertions=[credential("carol")])["results"]
    assert answer["error_code"] == 0
    yield served
    served.close()


def credential(name, mechanism=1, iterations=4096):
    return {"name": name, "mechanism": mechanism, "iterations": iterations, **RECORDED}


def request_of(call):
    fields = of_json(call["request"])
    for change in fields.get("upsertions", ()):
        for name in ("salt", "salted_password"):
            change[name] = base64.b64decode(change[name])
    defaults = {DESCRIBE: {"users": None}, HANDSHAKE: {"mechanism": "PLAIN"}, AUTHENTICATE: {"auth_bytes": b""}}
    return defaults.get(call["api"], {}) | fields


def comparable(answer):
    """An answer with its results and mechanisms sorted: Kafka's order is that of hash maps."""
    results = [
        result | {"credential_infos": sorted(result.get("credential_infos", ()), key=lambda info: info["mechanism"])}
        for result in answer.get("results", ())
    ]
    fields = {name: value for name, value in answer.items() if "throttle" not in name and "lifetime" not in name}
    for name in ("auth_bytes",):
        if name in fields:
            fields[name] = fields[name] or b""
    return fields | {"results": sorted(results, key=lambda result: result["user"])}


def test_recorded_calls_have_the_recorded_answers(broker):
    for call in CALLS:
        answer = broker.call(call["api"], call["version"], **request_of(call))
        assert comparable(answer) == comparable(of_json(call["answer"])), call["note"]
    assert len(CALLS) > 20


def test_users_survive_a_restart_and_their_passwords_are_not_kept(broker, tmp_path):
    broker.call(ALTER, 0, deletions=[], upsertions=[credential("dave", 2, 5000)])
    broker.call(ALTER, 0, deletions=[{"name": "carol", "mechanism": 1}], upsertions=[])
    broker.restart()
    (result,) = broker.call(DESCRIBE, 0, users=None)["results"]
    assert (result["user"], result["credential_infos"]) == ("dave", [{"mechanism": 2, "iterations": 5000}])
    catalogue = (tmp_path / "log" / "sharelens.catalog.json").read_text()
    assert base64.b64encode(b"pw").decode() not in catalogue


def test_there_are_no_quotas_which_tools_ask_for_before_users(broker):
    assert broker.call(QUOTAS, 1, components=[], strict=False)["entries"] == []


def test_users_of_a_start_are_read_from_options_and_files(tmp_path):
    file = tmp_path / "users"
    file.write_text(
        "# test users\n\n"
        'SCRAM-SHA-512=[name=carol,password="a,b]\\"c",iterations=8192]\n'
        "SCRAM-SHA-256=[name=dan,salt=c2FsdA==,saltedpassword=cHc=]\n"
    )
    users = read_scram_users(["SCRAM-SHA-256=[name=carol,password=p]"], file)
    assert {name: set(credentials) for name, credentials in users.items()} == {
        "carol": {"SCRAM-SHA-256", "SCRAM-SHA-512"},
        "dan": {"SCRAM-SHA-256"},
    }
    assert users["carol"]["SCRAM-SHA-512"].iterations == 8192
    assert users["dan"]["SCRAM-SHA-256"].salt == b"salt"


@pytest.mark.parametrize(
    "text",
    [
        "carol", "SCRAM-SHA-1=[name=carol,password=secret]", "SCRAM-SHA-256=[password=secret]",
        "SCRAM-SHA-256=[name=carol]", "SCRAM-SHA-256=[name=carol,password=secret,iterations=1]",
        "SCRAM-SHA-256=[name=carol,password=secret,saltedpassword=cHc=]",
        "SCRAM-SHA-256=[name=carol,saltedpassword=cHc=]",
        "SCRAM-SHA-256=[name=carol,salt=c2FsdA==,saltedpassword=]", "SCRAM-SHA-256=[name=carol,salt=%,password=secret]",
        "SCRAM-SHA-256=[name=carol,name=dan,password=secret]", "SCRAM-SHA-256=[name=carol,word=secret]",
    ],
)  # fmt: skip
def test_what_is_no_user_is_refused_without_its_password(text):
    with pytest.raises(ConfigError) as caught:
        read_scram_users([text], None)
    assert "--add-scram 1" in str(caught.value)
    assert "secret" not in str(caught.value)
