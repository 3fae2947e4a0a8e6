"""Mutations of streams groups by rule: assignments of members."""

from typing import Final

from tests.audit.model_group_log import GroupLog, targets, tasks
from tests.audit.rule_cases.cases import Table
from tests.audit.streams_changes import basic

ASSIGNMENTS: Final[Table[GroupLog]] = {
    "streams_member_state": (
        {str(state): lambda state=state: basic().change(12, state=state) for state in (0, 4, 127)},
        {
            "stable": lambda: basic().cut(13),
            "must revoke": lambda: basic().cut(25),
            "waits": lambda: basic().cut(24),
        },
    ),
    "streams_tasks_to_revoke": (
        {
            "stable": lambda: basic().change(12, active_tasks_pending_revocation=tasks(("9", [0]), epoch=4)),
            "none": lambda: basic().change(24, active_tasks_pending_revocation=()),
            "waits": lambda: basic().change(59, standby_tasks_pending_revocation=tasks(("1", [4]))),
        },
        {
            "active": lambda: basic().cut(25),
            "standby": lambda: basic().cut(78),
            "revoked": lambda: basic().cut(29),
        },
    ),
    "streams_assigned_and_revoked": (
        {
            "active": lambda: basic().change(24, active_tasks=tasks(("0", [0, 2, 4]), ("1", [1]), epoch=4)),
            "standby": lambda: basic().change(
                77, standby_tasks=basic().entries[77].value["standby_tasks_pending_revocation"]),
            "all": lambda: basic().change(
                24, active_tasks_pending_revocation=basic().entries[24].value["active_tasks"]),
        },
        {
            "apart": lambda: basic().cut(25),
            "standby apart": lambda: basic().cut(78),
            "given back": lambda: basic().cut(36),
        },
    ),
    "streams_other_than_target": (
        {
            "one less": lambda: basic().change(12, active_tasks=tasks(("0", [1, 3]), ("1", [0, 2]), epoch=4)),
            "one more": lambda: basic().change(22, standby_tasks=tasks(("1", [4]))),
            "a standby task less": lambda: basic().change(49, standby_tasks=()),
            "without a target": lambda: basic().drop(9),
        },
        {
            "waits for others": lambda: basic().cut(24),
            "revokes": lambda: basic().cut(25),
            "a target that is compacted": lambda: basic().cut(13).compacted(9),
        },
    ),
    "streams_task_with_two_owners": (
        {
            "too early": lambda: basic().cut(24).change(23, active_tasks=tasks(("0", [4]), epoch=5)),
            "revoked by another": lambda: basic().cut(27).change(26, active_tasks=tasks(("0", [1, 3, 4]), epoch=5)),
            "both": lambda: basic().cut(13).change(12, active_tasks=basic().entries[11].value["active_tasks"]),
        },
        {
            "freed": lambda: basic().cut(29),
            "of a member that left": lambda: basic().cut(90),
            "standby elsewhere": lambda: basic().cut(48),
        },
    ),
    "streams_task_twice_in_process": (
        {
            "standby of the same member": lambda: basic().change(47, standby_tasks=tasks(("1", [1]))),
            "standby of a sibling": lambda: basic().change(48, standby_tasks=tasks(("1", [1, 3]))),
            "standby twice": lambda: basic().change(48, standby_tasks=tasks(("1", [3, 4]))),
        },
        {
            "two processes": lambda: basic().cut(48),
            "of a process that is gone": lambda: basic().cut(100),
            "without a process": lambda: basic().cut(51),
        },
    ),
    "streams_warmup_tasks": (
        {
            "target": lambda: basic().change(8, warmup_tasks=targets(("1", [4]))),
            "assigned": lambda: basic().change(22, warmup_tasks=tasks(("1", [0]))),
            "to be revoked": lambda: basic().change(24, warmup_tasks_pending_revocation=tasks(("1", [0]))),
        },
        {
            "none": lambda: basic().cut(11),
            "standby": lambda: basic().cut(51),
            "no tasks": lambda: basic().cut(4),
        },
    ),
    "streams_task_epochs": (
        {
            "above the member epoch": lambda: basic().change(
                12, active_tasks=tasks(("0", [1, 3]), ("1", [0, 2, 4]), epoch=5)),
            "none": lambda: basic().change(
                12, active_tasks=tasks(("0", [1, 3]), ("1", [0, 2, 4]))),
            "another": lambda: basic().change(26, active_tasks=tasks(("0", [1, 3]), ("1", [0, 2]), epoch=5)),
        },
        {
            "kept": lambda: basic().cut(28),
            "of a task that comes back": lambda: basic().cut(90),
            "below the member epoch": lambda: basic().change(28, active_tasks=tasks(("0", [4]), ("1", [3, 4]), epoch=1))
            .cut(29),
        },
    ),
    "streams_tasks_unsorted": (
        {
            "partitions": lambda: basic().change(8, active_tasks=targets(("0", [2, 0, 4]), ("1", [1, 3]))),
            "subtopologies": lambda: basic().change(8, active_tasks=targets(("1", [1, 3]), ("0", [0, 2, 4]))),
            "without partitions": lambda: basic().change(8, standby_tasks=targets(("1", []))),
        },
        {
            "one task": lambda: basic().cut(66),
            "many tasks": basic,
            "none": lambda: basic().cut(4),
        },
    ),
    "streams_unknown_subtopology": (
        {
            "target": lambda: basic().change(8, standby_tasks=targets(("2", [0]))),
            "assigned": lambda: basic().change(23, active_tasks=tasks(("2", [0]), epoch=5)),
            "to be revoked": lambda: basic().change(24, active_tasks_pending_revocation=tasks(("01", [0]), epoch=4)),
        },
        {
            "one of two": lambda: basic().cut(37),
            "both": lambda: basic().cut(29),
            "a topology that is compacted": lambda: basic().cut(13).compacted(1),
        },
    ),
}  # fmt: skip
