"""The README of an evidence folder: the meaning of each file, for readers without sharelens."""

from collections.abc import Mapping

import pyarrow as pa

from sharelens.evidence_folder.events import MEANING
from sharelens.evidence_folder.question import Question
from sharelens.evidence_folder.tables import ALL_TABLES, ContentTable, kind_of, meaning
from sharelens.output import name_cell
from sharelens.parameters.times import time_text
from state_model.group_schemas import GroupKind

HEAD = """# Evidence {case}

| | |
|---|---|
| case | {case} |
| cluster | {cluster} |
| {kind} | {group} |
| topics asked for | {topics} |
| window | {begin} up to, not including, {end} (log time) |

`report.html` shows the essence in a browser. The tables below stand in `tables/`, each three times with the same rows:

- `NAME.csv`: UTF-8, RFC 4180 quoting, lines end in LF. Text stands in quotes, a number without; nothing at all is null.
  Bytes are in hexadecimal, lists and structs as JSON. Text that a spreadsheet might take for a formula (it begins with
  `=`, `+`, `-`, `@`, a tab or a line break) or that begins with `'` has one `'` put before it.
- `NAME.json`: an array of objects, one a line; bytes in hexadecimal.
- `NAME.parquet`: the exact types; bytes untouched.

Times are epoch milliseconds. **Log time** is the running maximum of record timestamps in a partition of
{about}

Nothing here depends on when, where or by whom it was made: the same question over the same records gives the same
bytes. When, where and by whom stands in `manifest.json`, with the sources and the SHA-256 of every file here. To check
without sharelens: `sha256sum manifest.json` prints the number in `manifest.sha256` (and the one noted elsewhere),
`sha256sum` of each file the one in `manifest.json`. With it: `sharelens verify DIR`; `sharelens verify DIR --log-dir …`
makes everything again and compares.

## Tables

| table | rows | one row is |
|---|---|---|
"""

ABOUT_SHARE_GROUPS = """`__share_group_state`, so "before the window" is a prefix of each log: `state_before`, then the
records in `record`, give `state_after`. Offsets of the state log (`log_offset`) and offsets of user records
(`first_offset`, `start_offset`, …) are different things. The log holds outcomes: who had a record, or has it right now,
is not in it."""
ABOUT_STREAMS = """`__consumer_offsets`. The log of the group coordinator has assignments and committed offsets: whether
a member processed a task is not in it, nor whether a member that is gone left or was fenced."""
ABOUT_CONSUMERS = """`__consumer_offsets`. The log of the group coordinator has assignments and committed offsets:
whether a member processed a record is not in it, nor whether a member that is gone left or was fenced. A group whose
records ended was deleted, or is a classic group again."""
ABOUT = {GroupKind.CONSUMER: ABOUT_CONSUMERS, GroupKind.STREAMS: ABOUT_STREAMS}


def readme(
    question: Question, cluster_id: str | None, record_counts: Mapping[str, int], columns: Mapping[str, pa.Schema]
) -> str:
    """The whole page; `columns`: the columns of each table as written."""
    kind = kind_of(record_counts)
    head = HEAD.format(
        case=cell(question.case_id),
        cluster=cell(cluster_id or "unknown"),
        kind=f"{kind.value} group",
        about=ABOUT.get(kind, ABOUT_SHARE_GROUPS),
        group=cell(name_cell(question.group_id)),
        topics=cell(", ".join(map(name_cell, question.topics)) or "all"),
        begin=time_text(question.from_ms),
        end=time_text(question.to_ms),
    )
    written = [table for table in ALL_TABLES if table.name in record_counts]
    overview = "".join(f"| `{table.name}` | {record_counts[table.name]} | {table.one_row} |\n" for table in written)
    events = "".join(f"| `{event}` | {meaning} |\n" for event, meaning in MEANING.items())
    remarks = f"\n## Events in `trace_event`\n\n| event | remark |\n|---|---|\n{events}"
    sections = "".join(_section(table, columns[table.name]) for table in written)
    return f"{head}{overview}{remarks if kind is GroupKind.SHARE else ''}{sections}"


def _section(table: ContentTable, schema: pa.Schema) -> str:
    rows = "".join(f"| `{field.name}` | {type_text(field.type)} | {meaning(table, field.name)} |\n" for field in schema)
    return f"\n## {table.name}\n\nSorted by {table.order}.\n\n| column | type | meaning |\n|---|---|---|\n{rows}"


def type_text(kind: pa.DataType) -> str:
    """A type in a word; what lists hold in brackets."""
    if pa.types.is_list(kind):
        return f"list of {type_text(kind.value_type)}"
    if pa.types.is_struct(kind):
        return "{" + ", ".join(kind.field(index).name for index in range(kind.num_fields)) + "}"
    return {"string": "text", "bool": "boolean", "binary": "bytes"}.get(str(kind), str(kind))


def cell(text: str) -> str:
    """Text in a cell of a Markdown table: nothing in it is markup."""
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>|~&" else letter for letter in text)
