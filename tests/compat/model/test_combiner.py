"""Kafka's own PersisterStateBatchCombiner on random input: our combined lists are its lists, batch for batch."""

import json

import pytest

from state_model.batches import coalesce, combine
from state_model.rule_sets import KAFKA_4_3, KAFKA_4_4
from state_model.share_records import StateBatch
from tests.datasets import dataset

CASES = 4000


def batches(rows):
    return tuple(
        StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
        for first, last, state, count in rows
    )


def cases(version):
    with (dataset("combiner") / f"combiner-{version}.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize(("version", "rules"), [("4.3.1", KAFKA_4_3), ("4.4.0", KAFKA_4_4)])
def test_every_list_is_the_one_that_kafka_made(version, rules):
    inputs = cases(version)
    assert len(inputs) == CASES
    wrong = [
        case
        for case in inputs
        if combine(batches(case["soFar"]), batches(case["new"]), case["startOffset"], rules=rules)
        != batches(case["out"])
    ]
    assert wrong == []


def test_both_versions_say_the_same_of_every_offset():
    for older, newer in zip(cases("4.3.1"), cases("4.4.0"), strict=True):
        assert older["soFar"] == newer["soFar"]
        assert older["new"] == newer["new"]
        assert coalesce(batches(older["out"])) == coalesce(batches(newer["out"]))
