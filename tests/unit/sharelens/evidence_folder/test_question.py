"""The question of an evidence folder, as its manifest keeps it."""

import json

import pytest

from sharelens.evidence_folder.errors import ManifestError
from sharelens.evidence_folder.question import Question, ask, from_json
from sharelens.measures.settings.observations import settings_of
from sharelens.measures.settings.over_time import DEAD_LETTER_TOPIC, GROUP_NAMES, NO_SETTINGS, GroupSettings
from tests.settings_in_files import broker_config, group_configs

CHANGED = settings_of(
    [
        group_configs(0, g=3),
        group_configs(20, DEAD_LETTER_TOPIC, g="letters"),
        group_configs(30, DEAD_LETTER_TOPIC, g="parked"),
        broker_config(7),
    ]
).groups


def question(settings: GroupSettings) -> Question:
    return ask(case_id="C", group_id="g", from_ms=1, to_ms=99, topics=(), settings=settings, dlq_topics=("more",))


def test_settings_of_all_times_survive_the_manifest() -> None:
    read = from_json(json.loads(json.dumps(question(CHANGED).as_json())))
    assert read == question(CHANGED)
    assert read.group_settings().timeline("g", GROUP_NAMES) == CHANGED.timeline("g", GROUP_NAMES)
    assert read.dlq_topics == ("letters", "more", "parked")


def test_settings_that_never_changed_are_written_as_before() -> None:
    document = question(NO_SETTINGS).as_json()
    assert "earlier_settings" not in document
    assert from_json(document) == question(NO_SETTINGS)


WRONG_TIME, WRONG_SETTING, TWICE = [(0, {})], [(5, {"x": 1})], [(5, {}), (5, {})]


@pytest.mark.parametrize("entries", [{}, [1], *(
    [{"until_ms": until_ms, "settings": settings} for until_ms, settings in periods]
    for periods in (WRONG_TIME, WRONG_SETTING, TWICE)
)])  # fmt: skip
def test_earlier_settings_of_another_shape_are_refused(entries: object) -> None:
    with pytest.raises(ManifestError):
        from_json(question(NO_SETTINGS).as_json() | {"earlier_settings": entries})
