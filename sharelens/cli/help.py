"""Help pages whose options stand in groups."""

from collections.abc import Iterable, Sequence
from types import TracebackType

import click

from sharelens.cli.commands import Commands

OWN_OPTIONS, GENERAL = "Options", "General"
GROUPS = {
    "Evidence": (
        *(
            "--lake",
            "--storage-option",
            "--log-dir",
            "--bootstrap-server",
            "--command-config",
            "--user-topics",
            "--cluster-id",
        ),
        *("--include-uncommitted", "--include-deleted", "--topic-names"),
        *("--max-bytes", "--dlq-topic", "--dlq-prefix", "--group-configs", "--broker-config", "--settings"),
        *("--end-offsets", "--now"),
    ),
    "Rows": (
        *(
            "--group",
            "--topic",
            "--partition",
            "--broker",
            "--offset",
            "--from-offset",
            "--to-offset",
            "--state-partition",
        ),
        *("--kind", "--class", "--event", "--status"),
    ),
    "Times": ("--as-of", "--at-offset", "--from", "--to", "--until", "--around", "--within", "--every", "--tz"),
    "Spark": ("--offline", "--jars-dir", "--master", "--conf"),
    "Output": (
        *("--output", "--limit", "--columns", "--wide", "--vertical", "--verbose", "--no-color", "--out"),
        *("--output-file", "--file-mode", "--format", "--force"),
    ),
    "Exit code": ("--fail-on", "--require-complete", "--require-rows"),
    GENERAL: ("--help", "--version"),
}
"""Heading -> its options. Options of a command alone stand first, below OWN."""
FEW = 8
"""A page with fewer options has one list."""


class GroupedFormatter(click.HelpFormatter):
    """Writes the list of options in groups, each under its heading, with one width of the first column."""

    def write_heading(self, heading: str) -> None:
        """Leaves out the heading of the options, which `write_dl` writes for each group."""
        self._is_of_options = heading == OWN_OPTIONS
        if not self._is_of_options:
            super().write_heading(heading)

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Writes a list; that of the options in groups."""
        if not getattr(self, "_is_of_options", False):
            super().write_dl(rows, col_max, col_spacing)
            return
        self._is_of_options = False
        listed = list(rows)
        groups = {OWN_OPTIONS: listed} if len(listed) < FEW else _grouped(listed)
        self.dedent()
        for number, (heading, options) in enumerate(groups.items()):
            if number:
                self.write_paragraph()
            super().write_heading(heading)
            self.indent()
            super().write_dl(options, col_max, col_spacing)
            self.dedent()
        self.indent()


class GroupedContext(click.Context):
    """A context whose help pages have groups, and whose command every usage error names."""

    formatter_class = GroupedFormatter

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, tb: TracebackType | None
    ) -> bool | None:
        if isinstance(exc_value, click.UsageError) and exc_value.ctx is None:
            exc_value.ctx = self  # click's parser leaves it out where an option lacks its value
        return super().__exit__(exc_type, exc_value, tb)


def write_commands(commands: Commands, formatter: click.HelpFormatter) -> None:
    """Writes the list of commands in groups, each under its heading."""
    limit = formatter.width - 6 - max(map(len, commands))
    for heading, names in commands.by_heading().items():
        with formatter.section(heading):
            formatter.write_dl([(name, commands.short_help(name, limit)) for name in names])


def _grouped(rows: Sequence[tuple[str, str]]) -> dict[str, list[tuple[str, str]]]:
    """The rows by heading, in the order of GROUPS, without empty groups."""
    headings = {option: heading for heading, options in GROUPS.items() for option in options}
    groups: dict[str, list[tuple[str, str]]] = {heading: [] for heading in (OWN_OPTIONS, *GROUPS)}
    for row in rows:
        names = row[0].replace(",", " ").replace("/", " ").split()
        groups[next((headings[name] for name in names if name in headings), OWN_OPTIONS)].append(row)
    return {heading: options for heading, options in groups.items() if options}
