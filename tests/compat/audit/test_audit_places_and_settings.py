"""The audit names misplaced logs, odd bytes and broken settings exactly where independent judges do."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.audit.judged_logs import Violation
from tests.audit.places_judge import JUDGED as OF_PLACES
from tests.audit.places_judge import judge_places, named
from tests.audit.rule_cases.case_tables import BETWEEN
from tests.audit.rule_cases.cases import audited_once, cases_of
from tests.audit.rule_cases.group_cases import cut, odd_key, spread
from tests.audit.rule_cases.world_cases import placed, updated, window
from tests.audit.settings_judge import JUDGED as OF_SETTINGS
from tests.audit.settings_judge import judge_settings
from tests.audit.world import GROUPS, audited
from tests.depths import examples

CASES = [case for case in cases_of(*BETWEEN) if case.rule in OF_PLACES | OF_SETTINGS]
ROWS = len(GROUPS) * 2


def broken_settings(rows):
    return {
        Violation(row["rule"], row["group_id"], row["partition"], row["first_log_offset"])
        for row in rows
        if row["rule"] in OF_SETTINGS
    }


def assert_agree(world, rows):
    """The judges say what the findings of the audit say; returns the rules that are violated."""
    places, settings = judge_places(world), judge_settings(world) if 0 in world.state else set()
    assert named(rows) == places
    if 0 in world.state:
        assert broken_settings(rows) == settings
    return {fault.rule for fault in places} | {violation.rule for violation in settings}


@pytest.mark.soak
def test_the_judges_agree_on_each_case():
    broken = dict.fromkeys(OF_PLACES | OF_SETTINGS, 0)
    for case in CASES:
        judged = assert_agree(case.make(), audited_once(case, audited))
        assert (case.rule in judged) == case.breaks, case.title
        broken[case.rule] += case.breaks
    assert min(broken.values()) >= 3


@pytest.mark.soak
@given(st.sampled_from([1, 3, 4, 50]), st.integers(0, 3), st.sampled_from([0, 4, 7, 50]), st.randoms())
@examples("simulation", shrink=False)
def test_misplaced_share_partitions(count, moved, other_count, chance):
    rows = chance.sample(range(40), moved)
    world = placed(count, *rows, other_count=other_count, extra_groups=chance.randint(0, 12) if other_count else 0)
    assert_agree(world, audited(world))


@pytest.mark.soak
@given(st.sampled_from([3, 7, 50]), st.sets(st.sampled_from([*GROUPS, "late", "stock"]), max_size=3))
@examples("table", shrink=False)
def test_misplaced_groups(count, moved):
    world = spread(*moved, count=count)
    assert_agree(world, audited(world))


@pytest.mark.soak
@given(st.sampled_from([*range(17), 18, 24, 99]), st.sampled_from([b"\0\0", b"", b"\0\7abc", None]))
@examples("table", shrink=False)
def test_records_of_odd_types(record_type, value):
    world = odd_key(record_type, value)
    assert_agree(world, audited(world))


@given(st.integers(0, ROWS), st.integers(0, 1 << 30))
@examples("table", shrink=False)
def test_values_with_damaged_bytes(row, seed):
    def change(value):
        chance = random.Random(seed)
        at = chance.randrange(len(value)) if value else 0
        return chance.choice([value[:at], value[:at] + bytes([chance.randrange(256)]) + value[at + 1 :], value + b"x"])

    world = cut(row, change)
    assert_agree(world, audited(world))


@given(st.lists(st.sampled_from("UUUUCIW"), max_size=9), st.integers(1, 4), st.sampled_from([0, 0, 0, 150, 700]))
@examples("table", shrink=False)
def test_updates_and_snapshots_under_a_limit(kinds, limit, at_s):
    world = updated(*kinds, text=str(limit), at_s=at_s)
    assert_agree(world, audited(world))


@pytest.mark.soak
@given(st.integers(95, 140), st.sampled_from([1, 7, 10, 64]), st.sampled_from([100, 101, 110]))
@examples("table", shrink=False)
def test_windows(last, span, locks):
    world = window(last, span=span, text=f"group.share.partition.max.record.locks={locks}\n")
    assert_agree(world, audited(world))
