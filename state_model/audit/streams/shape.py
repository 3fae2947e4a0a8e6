"""The declaration of a rule on streams groups, and the form of its check."""

from collections.abc import Callable, Iterable, Sequence

from state_model.audit.group_steps import GroupDifference
from state_model.audit.impact import Impact
from state_model.audit.rule import REPORT_BUG, STREAMS, Difference, Field, Need, Rule
from state_model.audit.severities import ERROR
from state_model.audit.streams.history import History, StreamsRecord
from state_model.streams.values import TaskId

TASKS_NAMED = 5
Check = Callable[[History, StreamsRecord], GroupDifference | None]
"""A rule: the group before a record, and the record."""
NEEDS_WHOLE_GROUP = "Tested where the log has all records of the group."
"""Said of rules that follow from missing records."""


def streams_rule(
    number: int,
    code: str,
    title: str,
    why: str,
    *,
    part: int = 0,
    severity: str = ERROR,
    relation: str = "=",
    impact: Impact = Impact.NONE,
    remedy: str = REPORT_BUG,
    needs: tuple[Need, ...] = (),
    is_of_whole_logs: bool = False,
) -> Rule:
    """Rule ST-`number`. `is_of_whole_logs`: it follows from missing records, so the log must show that none is gone."""
    return Rule(
        number=STREAMS + number,
        part=part,
        code=code,
        title=title,
        severity=severity,
        relation=relation,
        impact=impact,
        why=why,
        remedy=remedy,
        source=f"streams-group §11 ST-{number}",
        needs=(Need.GROUP_COORDINATOR, *needs, *([Need.LOG_DIRECTORIES] if is_of_whole_logs else [])),
    )


def differs(
    field: Field, expected: int, actual: int, earlier: StreamsRecord | None = None, tasks: Iterable[TaskId] = ()
) -> GroupDifference:
    """The difference of a violation; `earlier`: a previous record that proves it. `tasks`: the tasks that it names."""
    difference = Difference(field, expected, actual, names=_names(sorted(set(tasks))))
    return GroupDifference(difference, -1 if earlier is None else earlier.log_offset)


def _names(tasks: Sequence[TaskId]) -> str:
    """`0_1, 0_3`, and how many more."""
    suffix = f" and {len(tasks) - TASKS_NAMED} more" if len(tasks) > TASKS_NAMED else ""
    return ", ".join(map(str, tasks[:TASKS_NAMED])) + suffix
