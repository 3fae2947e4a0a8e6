"""Levels of features while the broker runs."""

import pytest

from tests.unit.sharelens.broker.handlers.test_all import ask

VERSIONS = (18, 4, {})
HEARTBEAT = (76, 1, {"group_id": "g", "member_id": "m", "member_epoch": 0, "subscribed_topic_names": ["t"]})


def update(level, version=2, feature="share.version", **extra_fields):
    return (57, version, {"feature_updates": [{"feature": feature, "max_version_level": level, **extra_fields}]})


def levels(answer):
    return {each.name: each.max_version_level for each in answer.finalized_features}


SWITCHED_ON = {"group.version": 1, "streams.version": 1}


def test_share_groups_are_turned_off_and_on_again_and_it_lasts(tmp_path):
    down, off, refused, up, on, served = ask(
        tmp_path, update(0, upgrade_type=2), VERSIONS, HEARTBEAT, update(1, upgrade_type=1), VERSIONS, HEARTBEAT
    )
    assert (down.error_code, up.error_code) == (0, 0)
    assert (levels(off), levels(on)) == (SWITCHED_ON, SWITCHED_ON | {"share.version": 1})
    assert on.finalized_features_epoch == off.finalized_features_epoch + 1
    assert (refused.error_code, served.error_code) == (35, 0)
    ask(tmp_path, update(0, upgrade_type=2))
    (after,) = ask(tmp_path, VERSIONS)
    assert (levels(after), after.finalized_features_epoch) == (SWITCHED_ON, on.finalized_features_epoch + 1)


@pytest.mark.parametrize(
    ("requested", "why"),
    [
        (update(2, upgrade_type=1), "levels from 0 to 1"),
        (update(0, upgrade_type=1), "needs a downgrade"),
        (update(1, feature="kraft.version", upgrade_type=1), "is not supported"),
    ],
)
def test_an_impossible_level_is_refused_with_a_reason(tmp_path, requested, why):
    refused, after = ask(tmp_path, requested, VERSIONS)
    assert refused.error_code == 95
    assert why in refused.error_message
    assert levels(after) == SWITCHED_ON | {"share.version": 1}


def test_a_trial_changes_nothing(tmp_path):
    key, version, fields = update(0, upgrade_type=2)
    tried, after = ask(tmp_path, (key, version, fields | {"validate_only": True}), VERSIONS)
    assert (tried.error_code, levels(after)) == (0, SWITCHED_ON | {"share.version": 1})


def test_older_versions_tell_it_for_each_feature(tmp_path):
    refused, allowed = ask(
        tmp_path, update(0, version=0, allow_downgrade=False), update(0, version=0, allow_downgrade=True)
    )
    assert [(each.feature, each.error_code) for each in refused.results] == [("share.version", 95)]
    assert [each.error_code for each in allowed.results] == [0]
