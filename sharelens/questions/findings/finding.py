"""A finding as a value: what is wrong, how badly, in which group, and the command that explains it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sharelens.groups.schemas import SHARE

ERROR, WARNING, INFO = "error", "warning", "info"
FINDING = pa.schema(
    [
        pa.field("severity", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("group_id", pa.string()),
        pa.field("topic_id", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("share_partitions", pa.int64()),
        pa.field("size", pa.int64()),
        pa.field("since_ms", pa.int64()),
        pa.field("text", pa.string()),
        pa.field("command", pa.string()),
    ]
)
Row = Mapping[str, Any]
Command = Callable[[str, list[str]], str]
"""A command line from the name of a command and its options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A row of FINDING; `question` is the command that explains it, with `options`.

    `topic_id`, `partition`: of the worst share partition, of `share_partitions` in all. `size`: records (of tasks
    without owner: tasks), None: unknown.
    """

    severity: str
    kind: str
    text: str
    question: str
    options: tuple[str, ...] = ()
    group_id: str | None = None
    topic_id: str | None = None
    topic: str | None = None
    partition: int | None = None
    share_partitions: int = 0
    size: int | None = None
    since_ms: int | None = None
    group_type: str = SHARE


def finding_rows(rows: Iterable[Finding], command: Command) -> pa.Table:
    """FINDING rows."""
    columns = [
        {name: getattr(row, name) for name in FINDING.names if name != "command"}
        | {"command": command(row.question, list(row.options))}
        for row in rows
    ]
    return pa.Table.from_pylist(columns, schema=FINDING)
