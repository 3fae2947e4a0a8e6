"""The answers that docs/how-to/begin-an-incident.md prints are those on a terminal of 120 columns."""

from tests.pages import DOCS, ROOT, SHELL, blocks

SCREENS = ROOT / "tests" / "unit" / "sharelens" / "output" / "screens-120.txt"
NAMES = {"/var/lib/kafka/data": "timeouts"}


def test_the_printed_lines_are_on_a_screen() -> None:
    screens = SCREENS.read_text(encoding="utf-8").splitlines()
    page = [block for block in blocks(DOCS / "how-to" / "begin-an-incident.md") if block.language not in SHELL]
    lines = [line for block in page for printed in block.printed for line in printed if line not in ("", "…")]
    assert len(lines) > 15
    for line in lines:
        for name, recorded in NAMES.items():
            line = line.replace(name, recorded)
        assert line in screens
