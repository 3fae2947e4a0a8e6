"""Where a cell of an answer leads: a group, a share partition, a record, or the question of a command line."""

import shlex
from collections.abc import Callable

from sharelens.output import Row
from sharelens.pages.address import Address, by_key, path
from sharelens.question_table.kinds import Flag
from sharelens.question_table.table import question_of
from sharelens.report.answer_sheets import RECORD_OFFSETS

AUDIT, BEFORE, GROUPS = "audit", "before", "groups"

OTHER_GROUPS = frozenset({"committed_offset", "subtopology_id"})
"""Fields of rows about partitions that a consumer or streams group reads: they have no share partition."""


def href(row: Row, field: str) -> str | None:
    """The address behind a cell by the first field that it shows; None: it leads nowhere."""
    link = LINKS.get(field)
    return None if link is None else link(row, field)


def question_of_command(line: object) -> str | None:
    """The page of the question that a command line asks; None: it is no question."""
    try:
        words = shlex.split(str(line))
        question = question_of(words[1])
    except (ValueError, IndexError, KeyError):
        return None
    parameters = {parameter.option: (key, parameter) for key, parameter in by_key(question).items()}
    options, rest = [], words[2:]
    while rest:
        option, sign, text = rest.pop(0).partition("=")
        if option not in parameters:
            continue
        key, parameter = parameters[option]
        if isinstance(parameter.kind, Flag):
            text = "on"
        elif not sign and rest:
            text = rest.pop(0)
        options.append((key, text))
    return Address(question.name, tuple(options)).url


def _group(row: Row, _: str) -> str | None:
    group = row.get("group_id")
    return path(GROUPS, group) if isinstance(group, str) else None


def _share_partition(row: Row, _: str) -> str | None:
    group, topic, partition = row.get("group_id"), row.get("topic") or row.get("topic_id"), row.get("partition")
    if not isinstance(group, str) or not isinstance(topic, str) or not isinstance(partition, int):
        return None
    if row.keys() & OTHER_GROUPS:
        return None
    return path(GROUPS, group, topic, str(partition))


def _record(row: Row, field: str) -> str | None:
    place, offset = _share_partition(row, field), row.get(field)
    return None if place is None or not isinstance(offset, int) else f"{place}/{offset}"


def _rule(row: Row, field: str) -> str | None:
    rule = row.get(field)
    return path(AUDIT, rule) if isinstance(rule, str) else None


def _before(row: Row, field: str) -> str | None:
    group, moment_ms = row.get("group_id"), row.get(field)
    return path(BEFORE, group, str(moment_ms)) if isinstance(group, str) and isinstance(moment_ms, int) else None


def _command(row: Row, field: str) -> str | None:
    return question_of_command(row.get(field))


LINKS: dict[str, Callable[[Row, str], str | None]] = {
    "group_id": _group,
    "topic": _share_partition,
    "topic_id": _share_partition,
    "partition": _share_partition,
    "command": _command,
    "rule": _rule,
    "since_ms": _before,
    **dict.fromkeys(RECORD_OFFSETS, _record),
}
"""By the field that a cell shows first."""
