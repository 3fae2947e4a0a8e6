"""The garbage collector rests while objects are made that stay, and does not look at them later."""

import gc
from contextlib import suppress

import pytest

from state_model.collection import lasting_objects, paused_collection


@pytest.mark.parametrize("was_enabled", [True, False])
def test_collection_is_paused_and_then_as_before(was_enabled: bool) -> None:
    is_enabled = gc.isenabled()
    try:
        (gc.enable if was_enabled else gc.disable)()
        with suppress(ValueError), paused_collection():
            is_collecting = gc.isenabled()
            raise ValueError
        assert not is_collecting
        assert gc.isenabled() == was_enabled
    finally:
        (gc.enable if is_enabled else gc.disable)()


def test_lasting_objects_are_no_longer_looked_at() -> None:
    frozen = gc.get_freeze_count()
    try:
        with lasting_objects():
            assert not gc.isenabled()
            stays = {"a": [1]}
        assert gc.get_freeze_count() > frozen
        assert not any(tracked is stays for tracked in gc.get_objects())
    finally:
        gc.unfreeze()
