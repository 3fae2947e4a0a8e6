import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_model.java import INT32_MIN, partition_for, partition_for_group, partition_of_hash, string_hash

TOPIC = "AAECAwQFBgcICQoLDA0ODw"


@pytest.mark.parametrize(
    ("group", "hashed", "partition"),
    [
        ("g1", -2133911397, 47),
        ("my-share-group", -756966507, 7),
        ("g:with:colon", -1233916121, 21),
        ("über", 1627706194, 44),
    ],
)
def test_keys_fall_on_the_partitions_of_the_real_broker(group, hashed, partition):
    assert string_hash(f"{group}:{TOPIC}:7") == hashed
    assert partition_for(group, TOPIC, 7, 50) == partition


@pytest.mark.parametrize(
    ("text", "hashed"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("polygenelubricants", INT32_MIN),  # the text whose hash has no positive twin
        ("\U0001f600", 0xD83D * 31 + 0xDE00),  # two code units, not one code point
        ("\ud83d", 0xD83D),  # half a pair
        ("\udc00\ud800", 0xDC00 * 31 + 0xD800),
    ],
)
def test_the_hash_is_over_utf_16_code_units(text, hashed):
    assert string_hash(text) == hashed


def test_the_smallest_integer_falls_on_partition_zero():
    assert partition_of_hash(INT32_MIN, 50) == 0
    assert partition_for_group("polygenelubricants", 7) == 0


def test_a_topic_without_partitions_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        partition_of_hash(1, 0)


@given(st.text(st.characters(codec=None)), st.text(st.characters(codec=None)))
def test_the_hash_of_a_joined_text_follows_from_its_parts(left_text, right_text):
    # A surrogate pair split over both parts is the same two code units.
    length = len(right_text.encode("utf-16-be", "surrogatepass")) // 2
    joined = (string_hash(left_text) * pow(31, length, 1 << 32) + string_hash(right_text)) & 0xFFFFFFFF
    assert string_hash(left_text + right_text) & 0xFFFFFFFF == joined


@given(st.integers(INT32_MIN, -INT32_MIN - 1), st.integers(1, 1000))
def test_every_hash_has_a_partition(hashed, count):
    assert 0 <= partition_of_hash(hashed, count) < count
