"""Which member epochs a coordinator accepts, and Kafka's words on those that it refuses."""

import pytest

from state_model.group_heartbeat import epoch_problem

REJOIN = "The member must abandon all its partitions and rejoin."


@pytest.mark.parametrize("kind", ["consumer", "share", "streams"])
@pytest.mark.parametrize(("epoch", "is_accepted"), [(5, True), (3, True), (4, False), (2, False), (6, False)])
def test_its_own_epoch_and_the_previous_one_are_accepted(kind: str, epoch: int, is_accepted: bool) -> None:
    assert (epoch_problem(kind, epoch, 5, 3) is None) == is_accepted


def test_the_previous_epoch_is_refused_when_the_member_has_something_else() -> None:
    assert epoch_problem("consumer", 3, 5, 3, is_subset=False) is not None
    assert epoch_problem("consumer", 5, 5, 3, is_subset=False) is None


def test_a_share_group_names_the_previous_epoch_to_a_smaller_one() -> None:
    than_known = "than the one known by the group coordinator (5)"
    assert (
        epoch_problem("share", 6, 5, 3)
        == f"The share group member has a greater member epoch (6) {than_known}. {REJOIN}"
    )
    assert epoch_problem("share", 4, 5, 3) == (
        f"The share group member has a smaller member epoch (4) {than_known}, "
        f"and it does not match the previous member epoch (3). {REJOIN}"
    )
    assert epoch_problem("consumer", 4, 5, 3) == (
        f"The consumer group member has a smaller member epoch (4) {than_known}. {REJOIN}"
    )
