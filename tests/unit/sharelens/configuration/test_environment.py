"""Variables of the environment for the length of a block."""

import os

import pytest

from sharelens.configuration.environment import variables_set


def test_variables_are_as_they_were_after_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARELENS_TEST_SET", "before")
    monkeypatch.delenv("SHARELENS_TEST_UNSET", raising=False)
    before = dict(os.environ)

    def fail() -> None:
        with variables_set({"SHARELENS_TEST_SET": "1", "SHARELENS_TEST_UNSET": "2"}):
            inside.update(os.environ)
            raise ZeroDivisionError

    inside: dict[str, str] = {}
    with pytest.raises(ZeroDivisionError):
        fail()
    assert inside == {**before, "SHARELENS_TEST_SET": "1", "SHARELENS_TEST_UNSET": "2"}
    assert dict(os.environ) == before


def test_what_the_block_sets_beside_them_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARELENS_TEST_BESIDE", "before")
    with variables_set({"SHARELENS_TEST_SET": "1"}):
        os.environ["SHARELENS_TEST_BESIDE"] = "after"
    assert os.environ["SHARELENS_TEST_BESIDE"] == "after"
    assert "SHARELENS_TEST_SET" not in os.environ
