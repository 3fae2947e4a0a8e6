"""A finding as a value: what is wrong or not judged, how badly, in which group, and the command that explains it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sharelens.groups.schemas import SHARE
from state_model.columnar.schemas import column

ERROR, WARNING, INFO = "error", "warning", "info"
IS_FOUND, NOT_JUDGED = "found", "not_judged"
FINDING = pa.schema(
    [
        column("severity", pa.string(), "error, warning or info"),
        column("kind", pa.string(), "what is wrong, as one word"),
        column("group_id", pa.string(), "group; null = no single group"),
        column("topic_id", pa.string(), "id of the topic of the worst share partition"),
        column("topic", pa.string(), "its name; null = unknown"),
        column("partition", pa.int32(), "its partition"),
        column("share_partitions", pa.int64(), "share partitions with this finding"),
        column("size", pa.int64(), "records, or tasks without owner; null = unknown"),
        column("since_ms", pa.int64(), "since when; null = unknown"),
        column("text", pa.string(), "the finding in words"),
        column("command", pa.string(), "command that explains the finding"),
        column("result", pa.string(), "found, or not_judged: the severity is then the worst that it can be"),
        column("remedy", pa.string(), "what settles a finding that is not judged; null = found"),
    ]
)
Row = Mapping[str, Any]
Command = Callable[[str, list[str]], str]
"""A command line from the name of a command and its options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A row of FINDING; `question` is the command that explains it, with `options`.

    `topic_id`, `partition`: of the worst share partition, of `share_partitions` in all. `size`: records (of tasks
    without owner: tasks), None: unknown. `remedy`: what settles whether it is so; None: it is found.
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
    remedy: str | None = None

    @property
    def result(self) -> str:
        """IS_FOUND or NOT_JUDGED."""
        return IS_FOUND if self.remedy is None else NOT_JUDGED


def finding_rows(rows: Iterable[Finding], command: Command) -> pa.Table:
    """FINDING rows."""
    columns = [
        {name: getattr(row, name) for name in FINDING.names if name != "command"}
        | {"command": command(row.question, list(row.options))}
        for row in rows
    ]
    return pa.Table.from_pylist(columns, schema=FINDING)
