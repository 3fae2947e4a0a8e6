import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_model.key_map import KeyMap

STEPS = st.lists(st.tuples(st.integers(-5000, 5000) | st.text(max_size=2), st.none() | st.integers()), max_size=40)


@given(STEPS)
def test_it_holds_what_a_dict_holds_and_older_maps_stay_as_they_were(steps):
    key_map, expected = KeyMap(), {}
    past = []
    for key, value in steps:
        past.append((key_map, dict(expected)))
        if value is None:
            key_map = key_map.remove(key)
            expected.pop(key, None)
        else:
            key_map = key_map.set(key, value)
            expected[key] = value
    for older, then in [*past, (key_map, expected)]:
        assert older == then
        assert len(older) == len(then)
        assert (dict(older.items()), [*older.items()]) == (then, [(key, then[key]) for key in older])
        assert [*older.values()] == [then[key] for key in older]
        assert all(older.get(key) == value for key, value in then.items())
        assert dict(older.items()) == dict(zip(older, older.values(), strict=True)) == then
        assert (len(older.items()), len(older.values())) == (len(then), len(then))
        assert all(item in older.items() for item in then.items())


@given(st.dictionaries(st.text(max_size=4), st.integers()))
def test_it_survives_pickling_and_equals_however_it_was_made(content):
    key_map = KeyMap(content.items())
    one_by_one = KeyMap()
    for key, value in reversed(content.items()):
        one_by_one = one_by_one.set(key, value)
    assert pickle.loads(pickle.dumps(key_map)) == key_map == one_by_one


def test_a_missing_key_is_missing():
    with pytest.raises(KeyError):
        KeyMap()["nothing"]
    empty = KeyMap()
    assert empty.remove("nothing") is empty
    assert repr(KeyMap([("a", 1)])) == "KeyMap({'a': 1})"


def test_get_answers_a_default_for_what_is_missing():
    key_map = KeyMap([("a", 1)])
    assert (key_map.get("a"), key_map.get("a", 2), key_map.get("b"), key_map.get("b", 2)) == (1, 1, None, 2)


def test_it_grows_from_few_keys_to_many_and_shrinks_again():
    key_map, expected = KeyMap(), {}
    for key in range(100):
        older, key_map = key_map, key_map.set(key, -key)
        assert older == expected
        expected[key] = -key
        assert key_map == expected
        assert (len(key_map), key_map[key], key_map.get(key), key_map.get(-1)) == (key + 1, -key, -key, None)
        assert [*key_map.items()] == [(each, -each) for each in key_map]
        assert [*key_map.values()] == [-each for each in key_map]
        assert ((key, -key) in key_map.items(), -key in key_map.values()) == (True, True)
    for key in range(100):
        key_map = key_map.remove(key)
        del expected[key]
        assert key_map == expected
        assert key_map.remove(key) is key_map
    assert key_map == KeyMap()
