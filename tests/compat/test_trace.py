"""The life of single records against the dead letters that arrived, the clients' journals and the topics themselves."""

from pathlib import Path
from typing import Any

import pytest

from tests.compat.test_stalled_poison import ask, journal, lasting_topics, lines
from tests.datasets import dataset
from tests.depths import in_soak

pytestmark = pytest.mark.usefixtures("evidence_opened_once")

Json = dict[str, Any]
Place = tuple[str, str, int, int]
SAMPLE = 12
DONE = ("ACCEPT", "IMPLICIT", "REJECT")


def traced(capsys: pytest.CaptureFixture[str], folder: Path, place: Place, *extra_options: str) -> list[Json]:
    group, topic, partition, offset = place
    key = ["--group", group, "--topic", topic, "--partition", str(partition), "--offset", str(offset)]
    return ask(capsys, "trace", "--log-dir", str(folder / "logs"), *key, *extra_options)


def sample_of(values: list[Any]) -> list[Any]:
    """A sample from the whole of it."""
    return values[:: max(1, len(values) // SAMPLE)]


def test_a_record_has_the_dead_letter_that_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    folder = dataset("dlq")
    letters: dict[Place, list[tuple[str, int, int]]] = {}
    for line in lines(folder, "topics.jsonl"):
        headers = {header["key"].removeprefix("__dlq.errors."): header["utf8"] for header in line.get("headers", ())}
        if line["topic"].startswith("dlq.") and "offset" in headers:
            place = (headers["group"], headers["topic"], int(headers["partition"]), int(headers["offset"]))
            letters.setdefault(place, []).append((line["topic"], line["partition"], line["offset"]))
    assert len(letters) > 100
    for place in sample_of(sorted(letters)):
        rows = traced(capsys, folder, place)
        seen_letters = [
            (row["dlq_topic"], row["dlq_partition"], row["dlq_offset"])
            for row in rows
            if row["event"] == "dead_lettered"
        ]
        assert sorted(seen_letters) == sorted(letters[place]), place
        assert {row["outcome"] for row in rows} == {"archived"}


@pytest.mark.parametrize("name", ["timeouts", *in_soak("basic", "dlq")])
def test_the_member_that_settled_a_record_was_assigned_its_partition(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = dataset(name)
    topics = lasting_topics(folder)
    settled = sorted(
        (place, did[-1]["m"]) for place, did in journal(folder).items() if did[-1]["ack"] in DONE and place[1] in topics
    )
    checked = 0
    for place, member in sample_of(settled):
        rows = traced(capsys, folder, place, "--members")
        outcomes = [row for row in rows if row["event"] == "delivery_state" and row["delivery_state"] in (2, 4)]
        if not outcomes:
            continue
        assigned = {client["client_id"] for row in outcomes for client in row["assigned_members_inferred"]}
        assert member in assigned, place
        checked += 1
    assert checked > SAMPLE // 2


def test_what_an_offset_holds_is_what_the_topic_holds(capsys: pytest.CaptureFixture[str]) -> None:
    folder = dataset("transactions")
    kinds = {
        line["offset"]: "control" if "control" in line else "record"
        for line in lines(folder, "topics.jsonl")
        if (line["topic"], line["partition"]) == ("payments", 0)
    }
    seen_pairs: set[tuple[str, str]] = set()
    for offset in [
        *sample_of(sorted(kinds)),
        *sample_of([at for at, kind in kinds.items() if kind == "control"]),
        max(kinds) + 1,
    ]:
        rows = traced(capsys, folder, ("g-rc", "payments", 0, offset))
        holds = rows[-1]["offset_holds"]
        if holds is not None:
            seen_pairs.add((kinds.get(offset, "nothing"), holds))
    assert seen_pairs <= {
        ("control", "control"),
        ("record", "record"),
        ("record", "aborted"),
        ("nothing", "beyond_end"),
    }
    assert {("control", "control"), ("record", "aborted"), ("nothing", "beyond_end")} <= seen_pairs
