"""The first line of the overview over made logs: incidents, in made-verdicts.txt beside this file, and healthy ones.

`python -m tests.compat.test_made_verdicts` writes the file again, for somebody to read what changed.
"""

import contextlib
import io
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from sharelens.cli import main
from tests.depths import in_soak
from tests.logs.incidents import INCIDENTS, make_healthy, make_incident

LINES = Path(__file__).parent / "made-verdicts.txt"
COPIES = ("whole", "plain", "fewer")
DRAINED_MS = 660_000


def answer(logs: Path) -> tuple[int, dict[str, Any]]:
    """Exit code and answer of the overview with --fail-on."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        try:
            code = main(["overview", "--log-dir", str(logs), "--fail-on", "--output", "json"]) or 0
        except SystemExit as stop:
            code = int(stop.code or 0)
    answered: dict[str, Any] = json.loads(printed.getvalue())
    return code, answered


def lines(name: str, folder: Path) -> str:
    """The first lines over the copies of an incident, each with the exit code."""
    incident = INCIDENTS[name]
    make_incident(incident, folder)
    titles = {"whole": "whole", "plain": "without times", "fewer": f"without {incident.lost}*"}
    parts = [f"# {name}"]
    for copy in COPIES:
        code, answered = answer(folder / copy)
        parts.append(f"{titles[copy]}: exit {code}\n    {answered['verdict']}")
    return "\n".join(parts) + "\n"


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", INCIDENTS)
def test_the_first_line_over_an_incident_is_as_it_was_reviewed(name: str, tmp_path: Path) -> None:
    reviewed = LINES.read_text(encoding="utf-8").split("\n\n")
    assert lines(name, tmp_path).rstrip("\n") in [part.rstrip("\n") for part in reviewed]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("produced_ms", [0, *in_soak(DRAINED_MS)])
@pytest.mark.parametrize(
    "profile_name", ["steady", "streams", *in_soak("single-records", "slow-consumers", "many-groups")]
)
def test_nothing_is_said_of_a_healthy_log(profile_name: str, produced_ms: int, tmp_path: Path) -> None:
    make_healthy(profile_name, tmp_path, produced_ms=produced_ms)
    for copy in ("whole", "ordinary", "plain"):
        code, answered = answer(tmp_path / copy)
        assert (copy, code, [row["text"] for row in answered["findings"] if row["severity"] != "info"]) == (copy, 0, [])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        texts = [lines(name, Path(place) / str(number)) for number, name in enumerate(INCIDENTS)]
    LINES.write_text("\n".join(texts), encoding="utf-8")
