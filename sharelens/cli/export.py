"""The command `metrics`: figures for a monitoring system."""

from pathlib import Path

import click

from sharelens.cli.asking import parameters
from sharelens.cli.listening import ensure_client, listen_address, tell_ready
from sharelens.cli.options.common import Duration, examples
from sharelens.output import say, tell
from sharelens.output.wording import counted
from sharelens.question_table.shared import SOURCE
from sharelens.source.request import Source
from state_model.errors import UsageError

MS_PER_S = 1000
WITHOUT_SERIES = ("share partition has no series of its own", "share partitions have no series of their own")
STDOUT = "-"


class FileMode(click.ParamType[int]):
    """Permission bits in octal."""

    name = "mode"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The bits; a usage error for anything else."""
        try:
            mode = int(str(value), 8)
        except ValueError:
            mode = -1
        if not 0o400 <= mode <= 0o777:
            self.fail(f"{value!r} is no mode of a file; type 600 or 644", param, ctx)
        return mode


@click.command(
    short_help="Lag, stalls, poison and freshness for a monitoring system.",
    epilog=examples(
        "sharelens metrics --lake ./lake --output-file /var/lib/node_exporter/sharelens.prom --file-mode 644",
        "sharelens metrics --lake ./lake --listen 127.0.0.1:9309",
        "sharelens metrics --log-dir /var/kafka-copy --format otlp --output-file ./sharelens.json",
    ),
)
@parameters(*SOURCE)
@click.option(
    "--output-file", metavar="FILE", help="Write FILE atomically: readers see the old or the new content; - for stdout."
)
@click.option(
    "--listen", metavar="HOST:PORT", help="Serve http://HOST:PORT/metrics until SIGTERM; port 0: any free port."
)
@click.option("--allow-remote", is_flag=True, help="Allow addresses that other machines can reach.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["prometheus", "otlp"]),
    default="prometheus",
    show_default=True,
    help="Prometheus text, or OTLP in JSON with OpenTelemetry's names (for --output-file).",
)
@click.option(
    "--max-series",
    type=click.IntRange(1, 10_000_000),
    default=100_000,
    show_default=True,
    metavar="N",
    help="Largest number of series; sums of groups have precedence, then the worst share partitions.",
)
@click.option(
    "--refresh",
    type=Duration(),
    default="15s",
    show_default=True,
    metavar="DURATION",
    help="With --listen: shortest time between two reads of the evidence.",
)
@click.option(
    "--file-mode",
    type=FileMode(),
    default="600",
    show_default=True,
    metavar="MODE",
    help="With --output-file: permission bits; 644 if node_exporter runs as another user.",
)
def metrics(
    source: Source,
    output_file: str | None,
    listen: str | None,
    allow_remote: bool,
    form: str,
    max_series: int,
    refresh: int,
    file_mode: int,
) -> None:
    """Metrics of share groups at the end of the evidence; unknown values have no series.

    docs/reference/metrics.md lists them. One metric has the log time of the figures.
    """
    if (output_file is None) == (listen is None):
        raise UsageError("metrics: give either --output-file FILE or --listen HOST:PORT")
    if listen is None and allow_remote:
        raise UsageError("metrics: --allow-remote goes with --listen")
    if output_file is not None:
        _write(source, Path(output_file), form, max_series, file_mode)
        return
    if form == "otlp":
        raise UsageError("metrics: OTLP is pushed, not scraped; give --output-file with --format otlp")
    _listen(source, *listen_address("metrics", listen or "", allow_remote=allow_remote), max_series, refresh / MS_PER_S)


def _write(source: Source, target: Path, form: str, max_series: int, mode: int) -> None:
    to_stdout = str(target) == STDOUT
    if not target.parent.is_dir():
        raise UsageError(f"metrics: --output-file: no directory {target.parent}")
    if target.is_dir():
        raise UsageError(f"metrics: --output-file: {target} is a directory; name a file in it")
    from sharelens.lake.whole_file import write_whole
    from sharelens.metrics.reading import read
    from sharelens.metrics.samples import export

    sample_export = export(read(source), max_series)
    if form == "otlp":
        from sharelens.metrics.otlp import otlp_json

        text = otlp_json(sample_export)
    else:
        ensure_client("metrics")
        from sharelens.metrics.prometheus import prometheus_text

        text = prometheus_text(sample_export)
    if to_stdout:
        tell(text.decode().rstrip("\n"))
    else:
        write_whole(target, text, mode=mode)
    series = sum(map(len, sample_export.samples.values()))
    groups = sum(len(figures.of_groups) for figures in sample_export.figures)
    where = f"{counted(groups, 'group')} in {counted(len(sample_export.figures), 'cluster')}"
    say(f"{'stdout' if to_stdout else target}: {series:,} series of {where}")
    for line in dict.fromkeys(line for figures in sample_export.figures for line in figures.warnings):
        say(f"warning: {line}")
    if sample_export.left_out:
        say(
            f"warning: {counted(sample_export.left_out, *WITHOUT_SERIES)} (--max-series {max_series}); "
            "the sums of their groups count them"
        )


def _listen(source: Source, host: str, port: int, max_series: int, refresh_s: float) -> None:
    ensure_client("metrics")
    from sharelens.metrics.prometheus import CONTENT_TYPE, prometheus_text
    from sharelens.metrics.reading import Page
    from sharelens.metrics.serving import serve
    from sharelens.metrics.watched import WatchedPage

    page = Page(source, max_series, prometheus_text, refresh_s)
    if source.live is None:
        page.text()  # what can't be read is told now, not at the first scrape
        serve(page.text, CONTENT_TYPE, host, port, tell_ready)
    else:
        watched = WatchedPage(page.text, prometheus_text)
        watched.first()
        serve(watched.text, CONTENT_TYPE, host, port, tell_ready)


COMMANDS = (metrics,)
