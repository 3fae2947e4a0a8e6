"""What a check of a journal finds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A violated rule. `line` of the journal, from 1; null for rules on the whole journal."""

    code: str
    where: str
    why: str
    line: int | None = None


def place_name(group: str | None, topic: str, partition: int, offset: int | None) -> str:
    """The place of a finding: GROUP/TOPIC-PARTITION@OFFSET without what is None."""
    at = "" if offset is None else f"@{offset}"
    return f"{'' if group is None else f'{group}/'}{topic}-{partition}{at}"
