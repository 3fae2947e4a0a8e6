"""Inferred causes: which finding of a share partition explains another one."""

import pytest

from state_model.audit.causes import CAUSES, inferred_causes
from state_model.audit.sightings import Sighting
from state_model.audit.table import BY_CODE


def causes(text):
    """By rule its cause, from lines `rule record since [share partition] [severity]`."""
    sightings = []
    for line in text.strip().splitlines():
        rule, log_offset, since, *words = line.split()
        severity = next((word for word in words if not word.isdigit()), "error")
        share_partition = next((int(word) for word in words if word.isdigit()), 0)
        sightings.append(Sighting(rule, share_partition, int(log_offset), int(since), severity))
    inferred = inferred_causes(sightings)
    return {sighting.rule: cause for sighting, cause in zip(sightings, inferred, strict=True) if cause}


def test_the_table_names_rules():
    assert {*CAUSES, *(effect for effects in CAUSES.values() for effect in effects)} <= set(BY_CODE)


@pytest.mark.parametrize("rule", CAUSES)
def test_a_finding_alone_has_no_cause(rule):
    assert causes(f"{rule} 9 0") == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (  # a snapshot is missing: its updates come first, then the next snapshot skips its epoch
            """
            snapshot_epoch_skips 63 37
            cold_snapshot_changes_state 63 37
            update_of_other_snapshot 61 37
            """,
            {
                "snapshot_epoch_skips": "update_of_other_snapshot",
                "cold_snapshot_changes_state": "update_of_other_snapshot",
            },
        ),
        (  # a tombstone is missing: a creation over a live share partition
            """
            snapshot_epoch_skips 59 48
            state_epoch_goes_back 59 48
            """,
            {"state_epoch_goes_back": "snapshot_epoch_skips"},
        ),
        (  # one snapshot with a wrong state epoch: the next one has the right one again
            """
            cold_snapshot_changes_state 85 76
            state_epoch_moves_without_init 85 76
            state_epoch_goes_back 96 85
            """,
            {
                "cold_snapshot_changes_state": "state_epoch_moves_without_init",
                "state_epoch_goes_back": "state_epoch_moves_without_init",
            },
        ),
        (  # a cause of a cause is the cause
            """
            life_after_deletion 37 37
            update_of_other_snapshot 38 37
            complete_count_too_small 39 37 warning
            """,
            {
                "update_of_other_snapshot": "life_after_deletion",
                "complete_count_too_small": "life_after_deletion",
            },
        ),
        (  # a snapshot lies between them
            """
            invalid_batch 10 10
            cold_snapshot_changes_state 30 20
            """,
            {},
        ),
        (  # another share partition
            """
            invalid_batch 10 10 1
            cold_snapshot_changes_state 12 2 2
            """,
            {},
        ),
        (  # a warning explains no error
            """
            start_offset_goes_back 10 2 warning
            cold_snapshot_changes_state 12 2
            """,
            {},
        ),
    ],
)
def test_a_cause_lies_in_the_state_that_a_finding_compares_with(text, expected):
    assert causes(text) == expected
