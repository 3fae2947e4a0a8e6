"""The audit of recorded brokers: nothing to blame on healthy ones, and every odd request to `edge` and `edge44`.

LEGAL_WARNINGS is the list of warnings that recorded logs may have, each with its cause; every entry is needed.
"""

import json
from collections import Counter
from typing import Any

import pytest

from sharelens.cli import main
from sharelens.kafka_log.layout import scan_log_directory
from sharelens.tables.logs.state import state_logs
from state_model.audit.rule import Need
from state_model.audit.table import BY_CODE, is_tested
from state_model.share_records import ShareRecord, decode_record
from tests.audit.reference.steps import steps
from tests.audit.reference.violations import CHECKED, violations
from tests.dataset_settings import given_settings, lines
from tests.datasets import FEW, dataset, kinds_first, scenarios
from tests.depths import in_soak
from tests.processes.in_process import recorded_lake

ODD = ("edge", "edge44")
"""Logs of requests that no leader sends, and that brokers accept: any state, count and order, from a raw client."""
VERSIONS = {"v41": "4.1", "v42": "4.2", "v44": "4.4", "dlq": "4.4", "edge44": "4.4"}
"""The Kafka version of data sets; of others it is 4.3, and `upgrade` has several."""
LEGAL_WARNINGS: dict[tuple[str, str], str] = {
    ("streams", "streams_topology_not_ready"): "no initial rebalance delay: the first target precedes internal topics",
    ("edge", "delivered_after_outcome"): "a raw client raises counts of acknowledged offsets",
    ("edge", "complete_count_too_small"): "a raw client sends any delivery complete count",
    ("edge", "stale_write"): "a raw client lowers counts at random",
    ("edge", "start_offset_goes_back"): "a raw client moves start offsets back, which 4.3 applies",
    ("edge", "count_over_limit"): "a raw client sends any delivery count",
    ("edge", "available_at_limit"): "a raw client sends any delivery count",
    ("edge44", "count_over_limit"): "a raw client sends any delivery count",
    ("edge44", "available_at_limit"): "a raw client sends any delivery count",
    ("edge44", "delivered_after_outcome"): "a raw client raises counts of acknowledged offsets",
    ("edge44", "complete_count_too_small"): "a raw client sends any delivery complete count",
    ("edge44", "stale_write"): "a raw client lowers counts at random",
}
ODD_ERRORS = {
    "edge": {
        ("acquired_state_written", 40): 834,
        ("archiving_before_4_4", 40): 904,
        ("never_delivered", 41): 415,
        ("count_over_maximum", 42): 428,
    },
    "edge44": {("acquired_state_written", 40): 510, ("never_delivered", 41): 244, ("count_over_maximum", 42): 266},
}
"""Records of `edge` and `edge44` by the rule that they violate: states 1 and 3, counts 0 and 32767."""


def audited(capsys, scenario, *extra_options, version=None):
    capsys.readouterr()
    named = ["--kafka-version", version] if version else []
    code = main(["audit", "--log-dir", str(dataset(scenario) / "logs"), *named, *extra_options, "--output", "json"])
    out, err = capsys.readouterr()
    assert code in (0, None), err
    return json.loads(out)


def version_of(scenario):
    return None if scenario == "upgrade" else VERSIONS.get(scenario, "4.3")


@pytest.mark.one_in(3)
@pytest.mark.parametrize("scenario", [name for name in scenarios() if name not in ODD])
def test_a_healthy_broker_has_no_error_and_no_warning_without_a_cause(scenario, capsys, tmp_path):
    settings = given_settings(dataset(scenario), tmp_path)
    findings = audited(capsys, scenario, *settings, version=version_of(scenario))["findings"]
    assert [row for row in findings if row["severity"] == "error"] == []
    unexplained = {(scenario, row["rule"]) for row in findings} - LEGAL_WARNINGS.keys()
    assert unexplained == set()


@pytest.mark.parametrize("scenario", ODD)
def test_odd_requests_are_named_by_rule(scenario, capsys):
    findings = audited(capsys, scenario, version=version_of(scenario))["findings"]
    errors: Counter[tuple[str, int]] = Counter()
    for row in findings:
        if row["severity"] == "error":
            errors[row["rule"], row["number"]] += row["count"]
    assert errors == ODD_ERRORS[scenario]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("scenario", kinds_first(FEW))
def test_a_lake_has_the_findings_of_its_log(scenario, capsys):
    lake = str(recorded_lake(scenario))
    for words in ([], ["--kafka-version", "4.4"], ["--rule", "complete_count_too_small"]):
        words = [*words, "--severity", "info"]
        capsys.readouterr()
        assert main(["audit", "--lake", lake, *words, "--output", "json"]) in (0, None)
        from_lake, from_log = json.loads(capsys.readouterr().out), audited(capsys, scenario, *words)
        assert from_lake["findings"] == from_log["findings"]
        assert not_tested(from_lake) == not_tested(from_log)


def not_tested(answer):
    """Needs by rule; without the rules on whole logs, which a lake never tests."""
    needs = {code: row["needs"] for row in answer["not_tested"] for code in row["rules"]}
    return {code: need for code, need in needs.items() if Need.LOG_DIRECTORIES not in BY_CODE[code].needs}


def of_formatter(scenario, rule_of_batch):
    """(rule, group, topic id, partition, state partition) -> count, first, last log offset, as Kafka prints records."""
    entry_by_place: dict[tuple[Any, ...], list[int]] = {}
    for line in lines(dataset(scenario), "formatter.jsonl"):
        batches = (line["value"] or {}).get("data", {}).get("stateBatches", ())
        for rule in {rule for batch in batches for rule in rule_of_batch(batch)}:
            key = line["key"]["data"]
            place = (rule, key["groupId"], key["topicId"], key["partition"], line["partition"])
            entry = entry_by_place.setdefault(place, [0, line["offset"], line["offset"]])
            entry[0] += 1
            entry[2] = line["offset"]
    return {place: tuple(entry) for place, entry in entry_by_place.items()}


def of_findings(findings):
    """The same of the findings of an audit."""
    return {
        (row["rule"], row["group_id"], row["topic_id"], row["partition"], row["state_partition"]): (
            row["count"],
            row["first_log_offset"],
            row["last_log_offset"],
        )
        for row in findings
    }


def odd_batch(batch):
    if batch["deliveryState"] == 1:
        yield "acquired_state_written"
    if batch["deliveryCount"] < 1:
        yield "never_delivered"
    if batch["deliveryCount"] > 25:
        yield "count_over_maximum"


@pytest.mark.parametrize("scenario", ODD)
def test_odd_batches_are_those_that_kafka_prints_one_by_one(scenario, capsys):
    rules = [word for number in ("acquired_state_written", "41", "42") for word in ("--rule", number)]
    findings = audited(capsys, scenario, *rules, version=version_of(scenario))["findings"]
    assert of_findings(findings) == of_formatter(scenario, odd_batch)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("scenario", [*ODD, *in_soak("transactions", "crash", "pruned")])
def test_every_finding_is_that_of_the_reference_form(scenario, capsys):
    findings = audited(capsys, scenario, "--severity", "info", version=version_of(scenario))["findings"]
    listed = {rule.id: rule.code for rule in CHECKED if is_tested(rule, version_of(scenario), frozenset())}
    expected: dict[tuple[Any, ...], list[int]] = {}
    for log in state_logs([scan_log_directory(str(dataset(scenario) / "logs"))], include_uncommitted=False):
        for violation in violations(steps(entries(log), is_from_zero=log.first_offset == 0)):
            if violation.rule_id in listed:
                place = (listed[violation.rule_id], *violation.key, log.number)
                entry = expected.setdefault(place, [0, violation.log_offset, violation.log_offset])
                entry[0] += 1
                entry[2] = violation.log_offset
    assert of_findings(findings) == {place: tuple(entry) for place, entry in expected.items()}


def entries(log):
    """The records of a state log as the reference model decodes them."""
    for chunk in log.read_raw():
        for row in chunk.records.select(["offset", "timestamp_ms", "key", "value"]).to_pylist():
            record = decode_record(row["key"], row["value"])
            assert isinstance(record, ShareRecord)
            yield row["offset"], row["timestamp_ms"], record


def test_every_entry_of_the_list_of_warnings_is_needed(capsys, tmp_path):
    seen_warnings = {
        (scenario, row["rule"])
        for scenario in sorted({name for name, _ in LEGAL_WARNINGS})
        for row in audited(
            capsys, scenario, *given_settings(dataset(scenario), tmp_path), version=version_of(scenario)
        )["findings"]
        if row["severity"] == "warning"
    }
    assert seen_warnings == LEGAL_WARNINGS.keys()


def test_the_proving_records_are_those_of_the_log(capsys):
    (row,) = audited(capsys, "edge", "--rule", "27", "--group", 'quote"back\\slash', "--topic", "edge:2")["findings"]
    assert (row["count"], row["first_log_offset"], row["severity"]) == (3, 84, "warning")
    assert (row["field"], row["expected"], row["seen"]) == ("start_offset", ">= 39", "34")
    offsets = [record["offset"] for record in row["records"]]
    assert {row["first_log_offset"], row["last_log_offset"]} < set(offsets)
    assert min(offsets) < 84


def test_settings_switch_the_rules_of_the_delivery_count_limit_on(capsys, tmp_path):
    settings = given_settings(dataset("dlq"), tmp_path)
    with_limit = audited(capsys, "dlq", *settings, "--severity", "info", version="4.4")
    assert "archived_below_limit" in {row["rule"] for row in with_limit["findings"]}
    assert not any("count_over_limit" in row["rules"] for row in with_limit["not_tested"])
    without = audited(capsys, "dlq", version="4.4")
    assert any("count_over_limit" in row["rules"] for row in without["not_tested"])
