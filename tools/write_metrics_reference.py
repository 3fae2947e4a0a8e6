"""Writes docs/reference/metrics.md from the metrics' catalog: python -m tools.write_metrics_reference [--check]."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from jobs.run_metrics import RUN_METRICS
from sharelens.metrics.catalog import METRICS, Metric
from tools.written_pages import write_or_check

TARGET = Path(__file__).parent.parent / "docs" / "reference" / "metrics.md"
HEAD = """# Metrics

Written by `python -m tools.write_metrics_reference` from `catalog.py` and `runs.py` in `sharelens/metrics/`.

```console
$ sharelens metrics --lake ./lake --output-file /var/lib/prometheus/node-exporter/sharelens.prom --file-mode 644
$ sharelens metrics --lake ./lake --listen 127.0.0.1:9309
$ sharelens metrics --lake ./lake --format otlp --output-file ./sharelens.json
```

**A file** (`--output-file`) is put in place at once, for node_exporter's textfile collector (its name must end in
`.prom`) or for a collector's `otlpjsonfile` receiver. It is made for its owner alone unless `--file-mode` says
otherwise. Write it after each run.

**An endpoint** (`--listen`) serves `/metrics` until SIGTERM, on this machine alone unless `--allow-remote` is given.
It looks for a new publication of the lake at a scrape, every `--refresh` (15 s) at most, and computes nothing while
there is none; a log directory is read again each time. What can't be read is an answer of 503 with the reason. Of a
running cluster a scrape gets the newest read that ended within five seconds; while the cluster is away `sharelens_up`
is 0 and the figures of groups are absent.

**What the figures stand for.** All are those at the end of the evidence, `sharelens_data_timestamp_seconds`; a stale
file shows by `sharelens_read_timestamp_seconds`. What is unknown has no sample, never -1 or 0. Counters count what
the evidence holds: in a lake they only grow; a log directory that was pruned may have less later, so compare
with an earlier sample (`x - x offset 15m`) rather than by `increase`. They come from the answers of the same names
([measures](measures.md)), with the settings of the lake or of `--settings`; from a lake and from the log directories
it was made of come the same samples, `sharelens_read_timestamp_seconds` and the audit's findings aside: a run audits
its lake, an export from a cluster audits its logs, and log directories are audited by `sharelens audit` alone.
`sharelens_findings` is the verdict of `sharelens overview` over the same evidence, with the findings that the setting
`findings` suppresses left out; a lake compares the lag of its publications, log directories that of moments.

**Labels.** `cluster` is the cluster id (`unknown` when no directory names one), `group` and `topic` are names as they
are, escaped as the format asks; a topic without a known name has its id, and so have all but the newest of several
topics of one name. Groups and topics are as many as the cluster has: `--max-series` (100000) bounds the series. Sums
of groups are always there; share partitions come the worst first (longest stall, largest lag), and
`sharelens_share_partitions_left_out` counts the others.

**OpenTelemetry.** `--format otlp` writes one ExportMetricsServiceRequest in OTLP's JSON, with the names and units of
the second and third column, the labels as attributes, the end of the evidence as the time of each data point, and its
beginning as the start time of sums (cumulative, monotonic). It is not pushed: a collector reads the file.

Alert rules are in `conf/prometheus/sharelens-alerts.yaml`, their pages in
[runbooks](../runbooks/share-group-stuck.md), a dashboard in `conf/grafana/sharelens.json`.
"""


OF_RUNS = """# Metrics of runs at intervals

`sharelens run --every 5s --listen 127.0.0.1:9310` serves these, with `process_resident_memory_bytes`,
`process_cpu_seconds_total`, `process_open_fds` and Prometheus' other figures of the process. They begin at 0 with it.

**Freshness** is the time from the append of a state record (its timestamp, by the broker's clock) to the publication
that shows it to questions first (by the clock of the machine of the run). Of each run that published records the age
of its oldest record counts: no record of it was older. The first run over a log that was there before has the age of
that log.
"""


def reference() -> str:
    """The page."""
    return "\n".join([HEAD, *_sections(METRICS), OF_RUNS, *_sections(RUN_METRICS)])


def _sections(metrics: Sequence[Metric]) -> Iterator[str]:
    """A table for each set of labels."""
    for scope in dict.fromkeys(metric.scope for metric in metrics):
        yield f"## Labels: {', '.join(f'`{label}`' for label in scope.labels)}" if scope.labels else "## No labels"
        yield ""
        yield "| metric | OpenTelemetry | unit | type | meaning | from | absent when |"
        yield "|---|---|---|---|---|---|---|"
        yield from (_row(metric) for metric in metrics if metric.scope is scope)
        yield ""


def _row(metric: Metric) -> str:
    cells = [f"`{metric.name}`", f"`{metric.twin}`", f"`{metric.unit}`", metric.kind.value, metric.text, metric.source]
    return "| " + " | ".join([*cells, metric.absent]) + " |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the page; with --check only says whether it is as it should be."""
    return write_or_check({TARGET: reference()}, arguments)


if __name__ == "__main__":
    raise SystemExit(main())
