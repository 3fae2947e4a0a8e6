"""Parameters under their earlier names: still accepted, with a warning."""

import pytest

from sharelens.frames import untested_rules
from sharelens.frames.renamed import renamed_parameter


@renamed_parameter("size", "size_bytes")
def doubled(size_bytes):
    return 2 * size_bytes


def test_the_earlier_name_is_accepted_with_a_warning():
    with pytest.warns(DeprecationWarning, match="doubled: the parameter 'size' is called 'size_bytes' now"):
        assert doubled(size=3) == 6


def test_the_present_name_gives_no_warning():
    assert doubled(size_bytes=3) == doubled(3) == 6


def test_both_names_at_once_are_refused():
    with pytest.raises(TypeError, match="both 'size_bytes' and its earlier name 'size'"):
        doubled(size=3, size_bytes=3)


def test_the_other_logs_of_an_audit_have_their_earlier_name():
    with pytest.warns(DeprecationWarning, match="untested_rules: the parameter 'others'"):
        assert untested_rules(others=None) == untested_rules(cluster_logs=None)
