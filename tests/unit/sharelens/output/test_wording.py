"""Numbers, times, names and command lines as the report writes them."""

import shlex
import subprocess

import pytest

from sharelens.output import wording
from sharelens.parameters.request import Source

HOSTILE = ("-x", "a b", "it's", '"', "</script>", "$(id)", "`id`", "line\nbreak", "tab\tbell\a", "\u202egnp.exe", "ü")


def test_moments_are_utc_and_unknown_ones_a_dash() -> None:
    assert wording.moment(1_790_000_000_123) == "2026-09-21 14:13:20"
    assert [wording.moment(unknown) for unknown in (None, -1, 0)] == ["–", "–", "–"]
    assert wording.moment(1 << 62) == str(1 << 62)


def test_the_clock_names_the_day_only_when_it_is_another() -> None:
    now = 1_790_000_000_000
    assert wording.clock(now - 1000, now) == "14:13:19"
    assert wording.clock(now - 86_400_000, now) == "2026-09-20 14:13:20"
    assert wording.clock(None, now) == "–"


def test_names_are_one_visible_word_and_long_ones_lose_their_middle_in_charts() -> None:
    assert wording.name("a\nb") == "a\\nb"
    assert wording.name("") == '""'
    assert wording.short("x" * 100, 11) == "xxxxx…xxxxx"
    assert wording.short("short") == "short"


@pytest.mark.parametrize("group", HOSTILE)
def test_a_command_line_gives_a_shell_the_very_name(group: str) -> None:
    line = wording.command(Source(lake="/a lake"), "trace", [f"--group={group}"])
    assert "\n" not in line
    printed = subprocess.run(["bash", "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True).stdout
    assert printed.decode().split("\0")[:-1] == ["sharelens", "trace", "--lake", "/a lake", f"--group={group}"]


def test_a_command_line_says_where_the_evidence_lies() -> None:
    source = Source(log_dirs=("/one", "/two"), cluster_id="c", include_uncommitted=True)
    words = shlex.split(wording.command(source, "dlq plan", ["--out=x.json"]))
    expected = "sharelens dlq plan --log-dir /one --log-dir /two --cluster-id=c --include-uncommitted --out=x.json"
    assert words == expected.split()
