"""The pages about the quality gates are those that the suites make; each blocking expectation has its runbook."""

import re

import pytest

from jobs.quality.rule import BLOCKING
from jobs.quality.suites import rules_of
from sharelens.lake.tables import TABLES
from sharelens.questions.gates import runbook
from tools import write_quality_reference

ROOT = write_quality_reference.DOCS.parent


def test_the_pages_are_up_to_date() -> None:
    assert write_quality_reference.main(["--check"]) == 0, "run: python -m tools.write_quality_reference"


@pytest.mark.slow
def test_every_blocking_expectation_has_its_place_in_a_runbook() -> None:
    rules = [rule for name in TABLES for rule in rules_of(name, write_quality_reference.LIMITS)]
    blocking_count = 0
    for rule in rules:
        if rule.level != BLOCKING:
            continue
        page, _, anchor = runbook(rule.kind, rule.table).partition("#")
        text = (ROOT / page).read_text(encoding="utf-8")
        sections = {
            title.replace(".", ""): body for title, body in re.findall(r"^## (.+)\n([^#]*)", text, re.MULTILINE)
        }
        assert f"`{rule.name}`" in sections[anchor]
        assert "**What to do.**" in text
        blocking_count += 1
    assert blocking_count > 300
