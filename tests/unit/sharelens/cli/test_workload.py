"""The command line of workloads."""

import json

import pytest

from sharelens.cli import main
from sharelens.cli.workload import PROFILE_NAMES
from sharelens.workloads import admin
from sharelens.workloads.profiles import CONSUMER, PROFILES, STREAMS

STREAMS_RUN = ("--bootstrap-server", "127.0.0.1:1", "--profile", "streams", "--journal", "x")
CONSUMER_RUN = ("--bootstrap-server", "127.0.0.1:1", "--profile", "consumer", "--journal", "x")
DELIVERY = {"event": "delivery", "since_ms": 30, "group": "g", "topic": "t", "partition": 0, "offset": 4, "id": 4}
ACK = {"event": "ack", "at_ms": 20, "group": "g", "topic": "t", "partition": 0, "type": "accept", "offsets": [4]}


def journal(tmp_path, *entries):
    path = tmp_path / "journal.jsonl"
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return str(path)


def test_the_command_offers_every_profile():
    assert (*PROFILES, STREAMS.name, CONSUMER.name) == PROFILE_NAMES


def test_a_journal_without_findings_is_fine(tmp_path, capsys):
    assert main(["workload", "--check", journal(tmp_path, DELIVERY | {"delivery_count": 1, "at_ms": 31})]) == 0
    assert "deliveries 1" in capsys.readouterr().out


def test_findings_are_listed_and_end_with_their_exit_code(tmp_path, capsys):
    confirmed = ACK | {"outcome": "confirmed", "delivery_counts": [1]}
    path = journal(tmp_path, confirmed, DELIVERY | {"delivery_count": 2, "at_ms": 31})
    assert main(["workload", "--check", path, "--output", "json"]) == 3
    output = capsys.readouterr()
    (finding,) = json.loads(output.out)
    assert (finding["code"], finding["where"], finding["line"]) == ("delivered_after_end", "g/t-0@4", 2)
    assert "1 finding in" in output.err


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        ([], 2, "give --bootstrap-server"),
        (["--bootstrap-server", "127.0.0.1:1", "--profile", "steady"], 2, "give --bootstrap-server"),
        (["--bootstrap-server", "127.0.0.1:1", "--profile", "calm", "--journal", "x"], 2, "calm"),
        (["--check", "x", "--profile", "steady"], 2, "--check excludes the options"),
        (["--check", "x", "--checkpoints", "y"], 2, "--check excludes the options"),
        ([*STREAMS_RUN, "--topic", "t"], 2, "its own topics: leave out --topic"),
        ([*STREAMS_RUN, "--checkpoints", "y"], 2, "no share state: leave out --checkpoints"),
        ([*CONSUMER_RUN, "--checkpoints", "y"], 2, "no share state: leave out --checkpoints"),
        ([*STREAMS_RUN, "--kafka-libs", "/missing"], 1, "/missing: no kafka-streams-examples-VERSION.jar"),
        (["--check", "missing.jsonl"], 1, "missing.jsonl can't be read"),
    ],
)
def test_what_is_missing_or_contradictory_is_said_in_a_line(arguments, code, why, capsys):
    assert main(["workload", *arguments]) == code
    assert why in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["steady", "dead-letters", "consumer"])
def test_a_broker_that_does_not_answer_is_named_in_a_line(profile, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(admin, "TIMEOUT_S", 0.2)
    requested = [
        "--bootstrap-server",
        "127.0.0.1:1",
        "--profile",
        profile,
        "--journal",
        str(tmp_path / "journal.jsonl"),
    ]
    assert main(["workload", *requested, "--records", "5"]) == 1
    message = capsys.readouterr().err
    assert message.startswith("sharelens: 127.0.0.1:1 does not answer")
    assert message.count("\n") == 1
