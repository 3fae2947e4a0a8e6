import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_model.batches import InOrder, coalesce, combine, combine_pairwise, pointwise_maximum, prune
from state_model.codec.primitives import UnknownTag
from state_model.rule_sets import KAFKA_4_3, KAFKA_4_4, RULE_SETS
from state_model.share_records import StateBatch

BOTH_RULE_SETS = pytest.mark.parametrize("rules", RULE_SETS.values(), ids=RULE_SETS)
WIDEST = 1 << 62


def batches(text):
    """`0-4 2/1, 7 0/3`: offsets 0 to 4 in state 2 with count 1, offset 7 in state 0 with count 3."""
    parsed_batches = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        span, pair = part.split()
        first, _, last = span.partition("-")
        state, count = pair.split("/")
        parsed_batches.append(
            StateBatch(
                first_offset=int(first),
                last_offset=int(last or first),
                delivery_state=int(state),
                delivery_count=int(count),
            )
        )
    return tuple(parsed_batches)


def brute_force(given_batches, start_offset=-1):
    """Every offset on its own: the definition that the algebra has to meet."""
    content = {}
    for batch in given_batches:
        for offset in range(batch.first_offset, batch.last_offset + 1):
            pair = (batch.delivery_count, batch.delivery_state)
            if start_offset == -1 or offset >= start_offset:
                content[offset] = max(pair, content.get(offset, pair))
    return content


@st.composite
def lists(draw, size=6):
    drawn_batches = []
    for _ in range(draw(st.integers(0, size))):
        first = draw(st.integers(0, 20))
        drawn_batches.append(
            StateBatch(
                first_offset=first,
                last_offset=first + draw(st.integers(0, 8)),
                delivery_state=draw(st.sampled_from([0, 2, 4])),
                delivery_count=draw(st.integers(1, 3)),
            )
        )
    return tuple(drawn_batches)


STARTS = st.integers(-1, 30)


# Old and new list, start offset, and what comes out under both rule sets: the cases of the table in §9.
CASES = """
nothing at all                    |                    |                    | -1 |
one batch passes as it is         | 3-9 0/1            |                    | -1 | 3-9 0/1
below the start offset            | 3-9 0/1            | 4-5 2/1            | 10 |
across the start offset           | 3-9 0/1            |                    |  5 | 5-9 0/1
equal, overlapping                | 0-5 2/1            | 3-9 2/1            | -1 | 0-9 2/1
equal, contiguous                 | 0-5 2/1            | 6-9 2/1            | -1 | 0-9 2/1
equal, one between                | 0-5 2/1            | 7-9 2/1            | -1 | 0-5 2/1, 7-9 2/1
contiguous, not equal             | 0-5 2/1            | 6-9 2/2            | -1 | 0-5 2/1, 6-9 2/2
same range, count prevails        | 0-5 4/1            | 0-5 0/2            | -1 | 0-5 0/2
same range, state prevails        | 0-5 0/1            | 0-5 4/1            | -1 | 0-5 4/1
a late lower write changes nothing| 0-5 2/2            | 0-5 4/1            | -1 | 0-5 2/2
same first, lower one longer      | 0-5 2/2            | 0-9 0/1            | -1 | 0-5 2/2, 6-9 0/1
same first, higher one longer     | 0-5 0/1            | 0-9 2/2            | -1 | 0-9 2/2
inside, lower                     | 0-9 2/2            | 3-5 0/1            | -1 | 0-9 2/2
inside, higher                    | 0-9 0/1            | 3-5 2/1            | -1 | 0-2 0/1, 3-5 2/1, 6-9 0/1
ends with, lower                  | 0-9 2/2            | 5-9 0/1            | -1 | 0-9 2/2
ends with, higher                 | 0-9 0/1            | 5-9 2/1            | -1 | 0-4 0/1, 5-9 2/1
ends after, lower                 | 0-5 2/2            | 3-9 0/1            | -1 | 0-5 2/2, 6-9 0/1
ends after, higher                | 0-5 0/1            | 3-9 2/1            | -1 | 0-2 0/1, 3-9 2/1
unordered input                   | 7-9 0/1, 0-3 0/1   | 5-6 0/1            | -1 | 0-3 0/1, 5-9 0/1
a range that covers nothing       | 9-3 4/9, 0-5 0/1   | 4-5 2/1            | -1 | 0-3 0/1, 4-5 2/1
""".strip().splitlines()


@BOTH_RULE_SETS
@pytest.mark.parametrize("case", CASES, ids=[case.split("|")[0].strip() for case in CASES])
def test_combining_follows_the_table(case, rules):
    _, old, new, start_offset, out = (part.strip() for part in case.split("|"))
    assert combine(batches(old), batches(new), int(start_offset), rules=rules) == batches(out)


def test_the_4_3_writer_may_leave_equal_neighbours_apart_and_the_4_4_writer_joins_them():
    old, new = batches("1-4 2/3, 5 2/2"), batches("5 2/3")
    assert combine(old, new, -1, rules=KAFKA_4_3) == batches("1-4 2/3, 5 2/3")
    assert combine(old, new, -1, rules=KAFKA_4_4) == batches("1-5 2/3")


@BOTH_RULE_SETS
@given(lists(), lists(), STARTS)
def test_the_content_is_the_maximum_of_each_offset(rules, old, new, start_offset):
    out = combine(old, new, start_offset, rules=rules)
    assert brute_force(out) == brute_force(old + new, start_offset)


@BOTH_RULE_SETS
@given(lists(), lists(), STARTS)
def test_more_than_one_batch_comes_out_ascending_and_disjoint(rules, old, new, start_offset):
    out = combine(old, new, start_offset, rules=rules)
    assert all(left_batch.last_offset < right_batch.first_offset for left_batch, right_batch in itertools.pairwise(out))


@BOTH_RULE_SETS
@given(lists(), lists(), STARTS)
def test_combining_is_commutative(rules, left_batches, right_batches, start_offset):
    assert combine(left_batches, right_batches, start_offset, rules=rules) == combine(
        right_batches, left_batches, start_offset, rules=rules
    )


@BOTH_RULE_SETS
@given(lists(), lists(), lists(), STARTS)
def test_combining_is_associative_per_offset(rules, first, second, third, start_offset):
    left_combined = combine(combine(first, second, start_offset, rules=rules), third, start_offset, rules=rules)
    right_combined = combine(first, combine(second, third, start_offset, rules=rules), start_offset, rules=rules)
    assert coalesce(left_combined) == coalesce(right_combined)


@BOTH_RULE_SETS
@given(lists(), lists(), STARTS)
def test_combining_the_same_twice_changes_nothing(rules, old, new, start_offset):
    once = combine(old, new, start_offset, rules=rules)
    assert coalesce(combine(once, new, start_offset, rules=rules)) == coalesce(once)


@given(lists(), lists())
def test_content_is_equal_exactly_if_every_offset_is(left_batches, right_batches):
    assert (coalesce(left_batches) == coalesce(right_batches)) is (
        brute_force(left_batches) == brute_force(right_batches)
    )
    assert coalesce(coalesce(left_batches)) == coalesce(left_batches)


@given(lists(), STARTS)
def test_pruning_keeps_what_lies_at_and_above_the_start_offset(given_batches, start_offset):
    assert brute_force(prune(given_batches, start_offset)) == brute_force(given_batches, start_offset)


@pytest.mark.parametrize("way", [pointwise_maximum, combine_pairwise])
def test_offsets_are_never_enumerated(way):
    claimed = batches(f"0-{WIDEST} 0/1, {WIDEST // 2} 2/1, {WIDEST}-{(1 << 63) - 1} 4/3")
    assert way(claimed) == batches(
        f"0-{WIDEST // 2 - 1} 0/1, {WIDEST // 2} 2/1, {WIDEST // 2 + 1}-{WIDEST - 1} 0/1, {WIDEST}-{(1 << 63) - 1} 4/3"
    )


@st.composite
def ascending_lists(draw):
    """Batches that ascend without overlap, with and without gaps between them."""
    drawn_batches, first = [], draw(st.integers(0, 5))
    for _ in range(draw(st.integers(2, 8))):
        last = first + draw(st.integers(0, 4))
        state, count = draw(st.sampled_from([(0, 1), (2, 1), (0, 2)]))
        drawn_batches.append(
            StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
        )
        first = last + draw(st.integers(1, 3))
    return tuple(drawn_batches)


@given(ascending_lists(), STARTS, st.integers(0, 8))
def test_batches_in_order_combine_as_any_others_do(given_batches, start_offset, cut):
    pruned_batches = prune(given_batches, start_offset)
    old, new = given_batches[:cut], given_batches[cut:]
    for rules, general in ((KAFKA_4_3, combine_pairwise), (KAFKA_4_4, pointwise_maximum)):
        expected = pruned_batches if len(pruned_batches) < 2 else general(pruned_batches)
        assert combine(old, new, start_offset, rules=rules) == expected


@BOTH_RULE_SETS
@given(lists(), lists(3), STARTS)
def test_a_list_known_to_be_in_order_combines_as_any_other_does(rules, old, new, start_offset):
    combined = combine(old, (), -1, rules=rules)
    assert combine(combined, new, start_offset, rules=rules) == combine(tuple(combined), new, start_offset, rules=rules)


@BOTH_RULE_SETS
@given(st.lists(st.tuples(lists(3), STARTS), max_size=12))
def test_one_list_after_the_other_gives_the_same_whether_what_is_held_is_known_to_be_in_order(rules, writes):
    combined, plain = (), ()
    for new, start_offset in writes:
        combined = combine(combined, new, start_offset, rules=rules)
        plain = tuple(combine(plain, new, start_offset, rules=rules))
        assert combined == plain


@BOTH_RULE_SETS
@given(lists(), lists(), STARTS)
def test_only_lists_without_overlaps_and_equal_neighbours_are_marked_as_in_order(rules, old, new, start_offset):
    out = combine(combine(old, (), -1, rules=rules), new, start_offset, rules=rules)
    if isinstance(out, InOrder):
        assert out == coalesce(out)


@BOTH_RULE_SETS
def test_batches_in_order_that_carry_unknown_tags_lose_them_when_combined(rules):
    first, second = batches("0-4 2/1, 5-9 0/1")
    tagged = first._replace(unknown_tags=(UnknownTag(tag=9, data=b"x"),))
    assert combine((tagged,), (second,), -1, rules=rules) == (first, second)
    assert combine((tagged,), (), -1, rules=rules) == (tagged,)
