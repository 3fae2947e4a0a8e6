"""The declaration of a rule on streams or consumer groups, and the form of its check."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar

from state_model.audit.group_steps import GroupDifference
from state_model.audit.impact import Impact
from state_model.audit.model_groups.history import History, ModelRecord
from state_model.audit.rule import REPORT_BUG, Difference, Field, Need, Rule
from state_model.audit.severities import ERROR

NAMES = 5
AnyHistory: TypeAlias = History[Any]
HistoryT = TypeVar("HistoryT", bound=AnyHistory)
Check: TypeAlias = Callable[[HistoryT, ModelRecord], GroupDifference | None]
"""A rule: the group before a record, and the record."""
NEEDS_WHOLE_GROUP = "Tested where the log has all records of the group."
"""Said of rules that follow from missing records."""


def group_rule(
    number: int,
    code: str,
    title: str,
    why: str,
    *,
    source: str,
    part: int = 0,
    severity: str = ERROR,
    relation: str = "=",
    impact: Impact = Impact.NONE,
    remedy: str = REPORT_BUG,
    needs: tuple[Need, ...] = (),
    is_of_whole_logs: bool = False,
) -> Rule:
    """A rule. `is_of_whole_logs`: it follows from missing records, so the log must show that none is gone."""
    return Rule(
        number=number,
        part=part,
        code=code,
        title=title,
        severity=severity,
        relation=relation,
        impact=impact,
        why=why,
        remedy=remedy,
        source=source,
        needs=(Need.GROUP_COORDINATOR, *needs, *([Need.LOG_DIRECTORIES] if is_of_whole_logs else [])),
    )


def differs(
    field: Field, expected: int, actual: int, earlier: ModelRecord | None = None, names: Iterable[Any] = ()
) -> GroupDifference:
    """The difference of a violation; `earlier`: a previous record that proves it. `names`: the tasks or partitions."""
    difference = Difference(field, expected, actual, names=_names(sorted(set(names))))
    return GroupDifference(difference, -1 if earlier is None else earlier.log_offset)


def other_type(expected: int, record: ModelRecord, earlier: ModelRecord) -> GroupDifference:
    """The difference of a record of another type than `expected` behind an earlier one."""
    return differs(Field.GROUP_RECORD_TYPE, expected, record.record_type, earlier)


def _names(names: Sequence[Any]) -> str:
    """`0_1, 0_3`, and how many more."""
    suffix = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
    return ", ".join(map(str, names[:NAMES])) + suffix
