"""Every place that an alert or an answer names is a page that the command prints."""

from pathlib import Path

import pytest
import yaml

from sharelens.cli import main
from sharelens.questions.gates import runbook

ROOT = Path(__file__).parents[4]


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["runbook", *words]) == 0
    return capsys.readouterr().out


def test_without_a_name_the_pages_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    names = shown(capsys).splitlines()
    assert {"share-group-stuck", "gates/keys"} <= set(names)
    assert len(names) == len(list((ROOT / "docs" / "runbooks").rglob("*.md")))


def test_alerts_by_name_and_by_place(capsys: pytest.CaptureFixture[str]) -> None:
    content = yaml.safe_load((ROOT / "conf" / "prometheus" / "sharelens-alerts.yaml").read_text(encoding="utf-8"))
    rules = [rule for group in content["groups"] for rule in group["rules"] if "alert" in rule]
    assert rules
    for rule in rules:
        by_name = shown(capsys, rule["alert"])
        assert by_name.startswith(f"# {rule['alert']}\n")
        assert by_name == shown(capsys, rule["annotations"]["runbook"])


def test_the_place_of_an_expectation_is_its_page_up_to_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, runbook("keys", "gold.lag"))
    assert text.startswith("# Gate closed: keys")
    assert [line for line in text.splitlines() if line.startswith("## ")] == ["## gold.lag"]


def test_another_name_is_refused_with_the_pages(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("nothing", "../../CHANGELOG", ""):
        assert main(["runbook", name]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "pages: gates/audit, gates/evidence" in line
