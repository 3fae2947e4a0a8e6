"""The features of the cluster."""

import pytest

from sharelens.broker.errors import ConfigError
from sharelens.broker.features import choose, parse


@pytest.mark.parametrize(
    ("requested", "stored_levels", "version", "outcome"),
    [
        ({}, {}, None, ("4.3", 1)),
        ({"share.version": 2}, {}, None, ("4.4", 2)),
        ({}, {"share.version": 2}, None, ("4.4", 2)),
        ({}, {}, "4.4", ("4.4", 1)),
        ({"share.version": 0}, {"share.version": 1}, None, ("4.3", 0)),
    ],
)
def test_requested_levels_override_those_of_the_directory(requested, stored_levels, version, outcome):
    features = choose(requested, stored_levels, version)
    assert (features.kafka_version, features.share_version) == outcome


@pytest.mark.parametrize(
    ("requested", "stored_levels", "version"),
    [
        ({"share.version": 2}, {}, "4.3"),
        ({"share.version": 3}, {}, None),
        ({}, {"share.version": 2}, "4.3"),
        ({"kraft.version": 1}, {}, None),
        ({"group.version": 2}, {}, None),
    ],
)
def test_levels_that_the_version_does_not_have_are_refused(requested, stored_levels, version):
    with pytest.raises(ConfigError):
        choose(requested, stored_levels, version)


def test_levels_are_numbers():
    assert parse(("share.version=2",)) == {"share.version": 2}
    for text in ("share.version", "share.version=", "share.version=two", "share.version=-1"):
        with pytest.raises(ConfigError, match="is no feature=level"):
            parse((text,))
