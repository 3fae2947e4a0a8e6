"""The answers that pages print are those on a terminal of 120 columns."""

import pytest

from tests.pages import DOCS, ROOT, SHELL, blocks

SCREENS = ROOT / "tests" / "unit" / "sharelens" / "output" / "screens-120.txt"


@pytest.mark.parametrize(
    ("page", "typed", "recorded", "least"),
    [
        ("begin-an-incident.md", "/var/lib/kafka/data", "timeouts", 15),
        ("was-it-kafka.md", "/var/kafka-copy", "edge", 11),
    ],
)
def test_the_printed_lines_are_on_a_screen(page: str, typed: str, recorded: str, least: int) -> None:
    screens = SCREENS.read_text(encoding="utf-8").splitlines()
    output_blocks = [block for block in blocks(DOCS / "how-to" / page) if block.language not in SHELL]
    lines = [line for block in output_blocks for printed in block.printed for line in printed if line not in ("", "…")]
    assert len(lines) > least
    for line in lines:
        assert line.replace(typed, recorded) in screens
