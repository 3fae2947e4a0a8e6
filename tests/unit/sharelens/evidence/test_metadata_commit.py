"""The committed end of a metadata log: snapshots, one voter, a majority of voters."""

from sharelens.evidence.metadata_commit import Epochs, VoterCopy, committed_end

OLD_AND_NEW: Epochs = ((1, 0), (2, 50))


def copy(node_id: int, end_offset: int, epochs: Epochs = OLD_AND_NEW) -> VoterCopy:
    return VoterCopy(node_id=node_id, end_offset=end_offset, epochs=epochs)


def test_single_voter_commits_its_whole_log() -> None:
    assert committed_end(40, 90, (1,), [copy(2, 90)]) == 90


def test_without_a_majority_only_the_snapshot_is_sure() -> None:
    assert committed_end(40, 90, (1, 2, 3), [copy(1, 90), copy(9, 90)]) == 40
    assert committed_end(0, 90, (), [copy(1, 90)]) == 0


def test_majority_commits_what_it_shares() -> None:
    assert committed_end(40, 90, (1, 2, 3), [copy(1, 90), copy(2, 70)]) == 70
    assert committed_end(40, 90, (1, 2, 3), [copy(1, 90), copy(2, 70), copy(3, 80)]) == 80


def test_copies_of_other_epochs_share_what_lies_before_the_difference() -> None:
    other = copy(2, 80, ((1, 0), (3, 60)))
    assert committed_end(40, 90, (1, 2, 3), [copy(1, 90), other]) == 40
    assert committed_end(40, 90, (1, 2, 3), [copy(1, 90), other, copy(3, 75, ((1, 0), (3, 60)))]) == 75


def test_records_of_an_older_epoch_are_committed_only_with_a_record_of_the_newest() -> None:
    assert committed_end(10, 90, (1, 2, 3), [copy(1, 90), copy(2, 50, ((1, 0),))]) == 10
