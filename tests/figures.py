"""Figures of one source as each surface shows them: questions, totals, page, evidence folders, metrics, SQL, tables.

A figure has a name; what surfaces show under one name is compared, whatever form it has there: a count by group, by
share partition, by group and cause. Counts of 0 are left out, because surfaces differ in whether they list them.
"""

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sharelens.evidence_folder.folder import make_evidence
from sharelens.evidence_folder.question import ask
from sharelens.lake.scan import Cut, open_lake
from sharelens.measures.figures import of_sums
from sharelens.measures.latency.tallies import By
from sharelens.measures.ranges.offset_counts import offset_counts
from sharelens.metrics import catalog as metrics
from sharelens.metrics.figures import Figures
from sharelens.metrics.figures import figures as metric_figures
from sharelens.output import Report
from sharelens.parameters.filters import KeyFilter
from sharelens.questions import accounting, cost, lag, latency, life, redelivered, stalled
from sharelens.questions.answers.completeness import times
from sharelens.questions.dead_letters import dlq, poison
from sharelens.questions.findings import overview
from sharelens.questions.queries.named import named_query
from sharelens.report import findings as page_findings
from sharelens.report.gather import Gathered, ReportQuestion, gather
from sharelens.source.request import CutChoice, Source
from sharelens.tables.opening import open_evidence
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_share_partitions
from sharelens.tables.where import Span
from tests.sql_answers import answer_of

Count = Mapping[Any, int]
EVERY, NOW, EVER = KeyFilter(), CutChoice(), Span()
BY_HOUR = By(hour=True)
NAMED_NUMBER = re.compile(r"(\w+) (\d+)")
DONE = ("acknowledged", "archived")
HOUR_MS = 3_600_000


def sums(rows: pa.Table, keys: list[str], column: str) -> Count:
    """The sums of a column by key, without zeros; a key of one column stands without a tuple."""
    counts: Counter[Any] = Counter()
    for row in rows.select(list(dict.fromkeys([*keys, column]))).to_pylist():
        counts[row[keys[0]] if len(keys) == 1 else tuple(row[name] for name in keys)] += row[column] or 0
    return {key: count for key, count in counts.items() if count}


def sized(rows: pa.Table) -> pa.Table:
    """The rows with `records`, the number of their offsets; answers call the first one `offset`."""
    first = "offset" if "offset" in rows.schema.names else "first_offset"
    return rows.append_column("records", offset_counts(rows, first))


def ones(rows: pa.Table) -> pa.Table:
    """The rows with `rows`, 1 each."""
    return rows.append_column("rows", pa.repeat(1, rows.num_rows))


def named_numbers(line: str) -> Count:
    """`rejected 3, unknown 4` as counts; what stands in brackets is left out."""
    text = re.sub(r"\([^)]*\)", "", line.partition(": ")[2])
    return {word: int(number) for word, number in NAMED_NUMBER.findall(text) if int(number)}


def given_up(rows: pa.Table) -> pa.Table:
    """The rows of records among POISON_RECORD rows; those near the limit have no cause."""
    return sized(rows).filter(pc.field("cause") != "gap")


def first_line(summary: str | None) -> str:
    return (summary or "").partition("\n")[0]


def keyed(counts: Mapping[str, Mapping[metrics.Metric, float]], metric: metrics.Metric) -> Count:
    """A metric by group, without zeros."""
    return {group: int(values[metric]) for group, values in counts.items() if values.get(metric)}


def recent_ms(answered: Report, kind: str) -> dict[str, int]:
    """Since when the findings of a kind count, by group."""
    rows = answered.parts["findings"].table.filter(pc.field("kind") == kind).to_pylist()
    return {row["group_id"]: row["since_ms"] for row in rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class Surfaces:
    """What one source shows: `figures` by name and surface."""

    figures: dict[str, dict[str, Count]]

    def add(self, surface: str, **counts: Count) -> None:
        """Notes what a surface shows."""
        for name, count in counts.items():
            self.figures.setdefault(name, {})[surface] = dict(count)

    def differences(self) -> list[str]:
        """One line for each figure that two surfaces show differently."""
        lines = []
        for name, shown in self.figures.items():
            first, *other_surfaces = shown.items()
            lines += [
                f"{name}: {first[0]} {first[1]}, {other} {count}"
                for other, count in other_surfaces
                if count != first[1]
            ]
        return lines


def of_questions(surfaces: Surfaces, evidence: Tables, place: str) -> None:
    """What the commands show, in rows and in their lines of totals."""
    settings = evidence.settings.groups
    answer = poison.poison(evidence, EVERY, NOW, EVER, settings, gaps=True)
    rows = given_up(answer.table)
    surfaces.add(
        f"poison of {place}",
        archived=sums(rows, ["group_id"], "records"),
        archived_by_cause=sums(rows, ["group_id", "cause"], "records"),
        gaps=sums(sized(answer.table).filter(pc.field("cause") == "gap"), ["group_id"], "records"),
        archived_totals=sums(sized(answer.table), ["cause"], "records"),
    )
    surfaces.add(f"totals of poison of {place}", archived_totals=named_numbers(first_line(answer.summary)))
    answer = dlq.dlq(evidence, EVERY, NOW, EVER, settings)
    rows = sized(answer.table)
    letters = ones(rows.filter(pc.is_valid(pc.field("dlq_offset"))))
    surfaces.add(
        f"dlq of {place}",
        dead_letters=sums(rows, ["status"], "records"),
        dead_letters_missing=sums(rows.filter(pc.field("status") == "missing"), ["group_id"], "records"),
        letters=sums(letters, ["group_id"], "rows"),
    )
    surfaces.add(f"totals of dlq of {place}", dead_letters=named_numbers(first_line(answer.summary)))
    answer = redelivered.redelivered(evidence, EVERY, NOW, EVER)
    rows = sized(answer.table)
    surfaces.add(
        f"redelivered of {place}",
        redelivered=sums(rows, ["group_id"], "records"),
        redelivered_by_kind=sums(rows, ["kind"], "records"),
    )
    surfaces.add(f"totals of redelivered of {place}", redelivered_by_kind=named_numbers(first_line(answer.summary)))
    answer = lag.lag(evidence, EVERY, NOW)
    surfaces.add(
        f"lag of {place}",
        lag=sums(answer.table, ["group_id"], "lag"),
        share_partitions=sums(ones(answer.table), ["group_id"], "rows"),
        incomplete=sums(ones(answer.table.filter(pc.field("completeness") != "complete")), ["group_id"], "rows"),
    )
    of_stalls(surfaces, evidence, place)
    of_life(surfaces, evidence, place)
    answer = cost.cost(evidence, EVERY, NOW, EVER)
    names = ("records", "bytes", "snapshots", "updates")
    surfaces.add(f"cost of {place}", **{f"state_{name}": sums(answer.table, ["group_id"], name) for name in names})
    of_deliveries(surfaces, evidence, place)


def of_stalls(surfaces: Surfaces, evidence: Tables, place: str) -> None:
    """What `stalled` shows."""
    rows = ones(stalled.stalled(evidence, EVERY, NOW, EVER, evidence.settings.groups).table)
    lasting = pc.is_null(pc.field("until_ms"))
    surfaces.add(
        f"stalled of {place}",
        standing_still=sums(rows.filter(lasting), ["group_id"], "rows"),
        stalls_over=sums(rows.filter(~lasting), ["group_id"], "rows"),
    )
    rows = stalled.stalled(evidence, EVERY, NOW, EVER, evidence.settings.groups, min_duration_ms=0).table
    surfaces.add(f"stalled of any duration of {place}", lasting=sums(ones(rows.filter(lasting)), ["group_id"], "rows"))


def of_life(surfaces: Surfaces, evidence: Tables, place: str) -> None:
    """What `life` shows."""
    answer = life.life(evidence, EVERY, NOW, EVER)
    surfaces.add(f"life of {place}", events=sums(ones(answer.table), ["event"], "rows"))
    surfaces.add(f"totals of life of {place}", events=named_numbers(first_line(answer.summary)))


def of_deliveries(surfaces: Surfaces, evidence: Tables, place: str) -> None:
    """What `attempts`, `latency` and `account` show of settled records."""
    attempts = latency.attempts(evidence, EVERY, NOW, EVER, BY_HOUR)
    done = attempts.table.filter(pc.field("outcome") != "open")
    surfaces.add(
        f"attempts of {place}",
        settled=sums(done, ["group_id", "outcome"], "offsets"),
        settled_by_deliveries=sums(done, ["group_id", "outcome", "delivery_count"], "offsets"),
        deliveries=sums(done, ["group_id"], "deliveries"),
        extra_deliveries=sums(done, ["group_id"], "extra_deliveries"),
    )
    answer = latency.latency(evidence, EVERY, NOW, EVER, BY_HOUR)
    surfaces.add(
        f"latency of {place}",
        settled=sums(answer.table, ["group_id", "outcome"], "settled_offsets"),
        deliveries=sums(answer.table, ["group_id"], "deliveries"),
        extra_deliveries=sums(answer.table, ["group_id"], "extra_deliveries"),
    )
    accounted = accounting.account(evidence, EVERY, NOW, EVER)
    offsets = sums(accounted.table, ["class"], "offsets")
    surfaces.add(f"account of {place}", offsets=offsets)
    totals = named_numbers(first_line(accounted.summary).partition("difference")[2])
    surfaces.add(f"totals of account of {place}", offsets=totals)


def of_overview(surfaces: Surfaces, evidence: Tables, place: str) -> None:
    """What `overview` shows, with the answers of the same hour of the commands that it names."""
    settings = evidence.settings.groups
    answered = overview.overview(evidence, Source(), EVERY, NOW, settings)
    groups = answered.parts["groups"].table.filter(pc.field("group_type") == "share")
    surfaces.add(
        f"overview of {place}",
        lag=sums(groups, ["group_id"], "lag"),
        share_partitions=sums(groups, ["group_id"], "share_partitions"),
        share_groups={"share_groups": groups.num_rows},
        standing_still=sums(groups, ["group_id"], "standing_still"),
    )
    archived = dict(sums(groups, ["group_id"], "archived_recently"))
    extra = dict(sums(groups, ["group_id"], "repeated_recently"))
    findings = answered.parts["findings"].table
    missing = findings.filter((pc.field("kind") == "dead_letters_missing") & (pc.field("result") == "found"))
    surfaces.add(f"overview of {place}", dead_letters_missing=sums(missing, ["group_id"], "size"))
    for group, since_ms in recent_ms(answered, "records_archived").items():
        of_group = KeyFilter(groups=frozenset([group]))
        rows = poison.poison(evidence, of_group, NOW, Span(from_ms=since_ms), settings).table
        surfaces.add(
            f"poison --from of {place}",
            **{f"archived recently by {group}": sums(given_up(rows), ["group_id"], "records")},
        )
        surfaces.add(f"overview of {place}", **{f"archived recently by {group}": {group: archived[group]}})
    for group, since_ms in recent_ms(answered, "redelivery_burst").items():
        of_group = KeyFilter(groups=frozenset([group]))
        rows = latency.attempts(evidence, of_group, NOW, Span(from_ms=since_ms), BY_HOUR).table
        surfaces.add(
            f"attempts --from of {place}",
            **{f"repeated recently by {group}": sums(rows, ["group_id"], "extra_deliveries")},
        )
        surfaces.add(f"overview of {place}", **{f"repeated recently by {group}": {group: extra[group]}})


def of_page(surfaces: Surfaces, evidence: Tables, place: str) -> None:
    """What the report shows: tiles, the table of groups, counts of dead letters and events."""
    gathered = gather(evidence, ReportQuestion(settings=evidence.settings.groups))
    groups = gathered.answers["groups"].table
    surfaces.add(
        f"report of {place}",
        archived=sums(of_sums("archived_records", gathered.answers["poison"].sums), ["group_id"], "records"),
        redelivered=sums(gathered.answers["redelivered"].sums, ["group_id"], "records"),
        lag=sums(groups, ["group_id"], "lag"),
        share_partitions=sums(groups, ["group_id"], "share_partitions"),
        standing_still=sums(groups, ["group_id"], "standing_still"),
        share_groups={"share_groups": groups.num_rows},
        dead_letters={status: count for status, count in dlq.counts_of(gathered.answers["dlq"].sums).items() if count},
        events=life.counts_of(gathered.answers["life"].sums),
    )
    of_tiles(surfaces, gathered, place)


def of_tiles(surfaces: Surfaces, gathered: Gathered, place: str) -> None:
    """The tiles: sums over all groups, which are compared with sums of the others."""
    tiles = {tile.label: tile.figure for tile in page_findings.tiles(gathered)}
    for label, name in (("Archived", "archived"), ("Redelivered", "redelivered"), ("Standing still", "standing_still")):
        shown = surfaces.figures[name][f"report of {place}"]
        surfaces.add(f"tiles of {place}", **{f"all {name}": {"all": int(tiles[label].replace(",", ""))}})
        surfaces.add(f"groups of the report of {place}", **{f"all {name}": {"all": sum(shown.values())}})
    surfaces.add(f"tiles of {place}", share_groups={"share_groups": int(tiles["Share groups"])})


def of_folders(surfaces: Surfaces, evidence: Tables, place: str) -> None:
    """What evidence folders of all share groups have of a window that goes on after the evidence."""
    first_ms, last_ms = times(evidence.cover())
    assert first_ms is not None
    assert last_ms is not None
    groups = read_share_partitions(evidence).column("group_id").unique().to_pylist()
    with tempfile.TemporaryDirectory() as scratch:
        folders = [Path(scratch) / str(number) for number in range(len(groups))]
        for group, folder in zip(groups, folders, strict=True):
            question = ask(
                case_id="figures",
                group_id=group,
                from_ms=first_ms,
                to_ms=last_ms + HOUR_MS,
                topics=(),
                settings=evidence.settings.groups,
            )
            make_evidence(evidence, question, folder, command_line=[], hash_topics=False)
        tables = {
            name: pa.concat_tables([pq.read_table(folder / "tables" / f"{name}.parquet") for folder in folders])
            for name in ("poison", "redelivered", "dlq", "lag", "life")
        }
    rows = given_up(tables["poison"])
    letters = sized(tables["dlq"])
    surfaces.add(
        f"evidence folders of {place}",
        archived=sums(rows, ["group_id"], "records"),
        archived_by_cause=sums(rows, ["group_id", "cause"], "records"),
        redelivered=sums(sized(tables["redelivered"]), ["group_id"], "records"),
        redelivered_by_kind=sums(sized(tables["redelivered"]), ["kind"], "records"),
        dead_letters_missing=sums(letters.filter(pc.field("status") == "missing"), ["group_id"], "records"),
        lag=sums(tables["lag"], ["group_id"], "lag"),
        share_partitions=sums(ones(tables["lag"]), ["group_id"], "rows"),
        events=sums(ones(tables["life"]), ["event"], "rows"),
    )


def of_metrics(surfaces: Surfaces, evidence: Tables, place: str) -> None:
    """What the exporter writes."""
    written: Figures = metric_figures(evidence)
    of_groups = written.of_groups
    surfaces.add(
        f"metrics of {place}",
        archived=keyed(of_groups, metrics.GROUP_ARCHIVED),
        redelivered=keyed(of_groups, metrics.GROUP_REDELIVERED),
        lag=keyed(of_groups, metrics.GROUP_LAG),
        share_partitions=keyed(of_groups, metrics.GROUP_SHARE_PARTITIONS),
        incomplete=keyed(of_groups, metrics.GROUP_INCOMPLETE),
        dead_letters_missing=keyed(of_groups, metrics.GROUP_DEAD_LETTERS_MISSING),
        evidence=_of_cluster(written),
    )


def _of_cluster(written: Figures) -> Count:
    names = {
        metrics.STATE_PARTITIONS: "state_partitions",
        metrics.GAPS: "gaps",
        metrics.QUARANTINED: "quarantined",
        metrics.HELD_BACK: "held_back",
    }
    return {name: int(written.of_cluster[metric]) for metric, name in names.items()}


def of_cover(surfaces: Surfaces, evidence: Tables, place: str) -> None:
    """What `status` and the last line of each answer say of the evidence."""
    cover = evidence.cover()
    surfaces.add(
        f"cover of {place}",
        evidence={
            "state_partitions": len(cover),
            "gaps": sum(len(part.losses) for part in cover),
            "quarantined": sum(part.quarantined for part in cover),
            "held_back": sum(part.held_back for part in cover),
        },
        ends={part.state_partition: part.end_offset_exclusive for part in cover},
        begins={part.state_partition: part.first_offset for part in cover},
    )


def of_sql(surfaces: Surfaces, lake: Cut) -> None:
    """What the named queries show."""

    def rows(name: str, *arguments: str) -> pa.Table:
        query = named_query(name)
        return answer_of(lake, query.duckdb_sql, query.values(list(arguments)))

    poisoned, histogram, letters = rows("poison_by_topic"), rows("deliveries_histogram"), rows("dead_letters_by_cause")
    lags, spent, fresh = rows("lag_now"), rows("state_cost"), rows("freshness")
    histogram = histogram.append_column("outcome", pc.utf8_lower(histogram.column("delivery_state_name")))
    surfaces.add(
        "sql",
        archived=sums(poisoned, ["group_id"], "records"),
        archived_by_cause=sums(poisoned, ["group_id", "cause"], "records"),
        settled=sums(histogram, ["group_id", "outcome"], "records"),
        settled_by_deliveries=sums(histogram, ["group_id", "outcome", "delivery_count"], "records"),
        letters=sums(letters.filter(pc.is_valid(pc.field("group_id"))), ["group_id"], "letters"),
        lag=sums(lags, ["group_id"], "lag"),
        share_partitions=sums(ones(lags), ["group_id"], "rows"),
        incomplete=sums(ones(rows("incomplete")), ["group_id"], "rows"),
        stalls_over=sums(ones(rows("longest_stalls")), ["group_id"], "rows"),
        lasting=sums(ones(rows("oldest_open_record")), ["group_id"], "rows"),
        ends=sums(fresh, ["state_partition"], "end_log_offset_exclusive"),
        **{f"state_{name}": sums(spent, ["group_id"], name) for name in ("records", "bytes", "snapshots", "updates")},
    )


def of_tables(surfaces: Surfaces, lake: Cut) -> None:
    """What the gold tables hold; `frames` compute their rows."""
    given_up_rows, again = given_up(lake.scan("gold.poison_record")), sized(lake.scan("gold.redelivered_record"))
    verdicts = sized(lake.scan("gold.dlq_reconciliation"))
    attempts = lake.scan("gold.attempts").filter(pc.field("outcome") != "open")
    surfaces.add(
        "tables",
        archived=sums(given_up_rows, ["group_id"], "records"),
        archived_by_cause=sums(given_up_rows, ["group_id", "cause"], "records"),
        redelivered=sums(again, ["group_id"], "records"),
        dead_letters=sums(verdicts, ["status"], "records"),
        settled=sums(attempts, ["group_id", "outcome"], "offsets"),
        events=sums(ones(lake.scan("gold.life_event")), ["event"], "rows"),
        lag=sums(lake.scan("gold.lag"), ["group_id"], "lag"),
    )


PARTS: tuple[Callable[[Surfaces, Tables, str], None], ...] = (
    of_questions, of_overview, of_page, of_folders, of_metrics, of_cover,
)  # fmt: skip


def figures_of(log_dir: str, lake: str) -> Surfaces:
    """All figures of a log directory and of the lake of a run over it."""
    surfaces = Surfaces(figures={})
    for place, source in (("log", Source(log_dirs=(log_dir,))), ("lake", Source(lake=lake))):
        with open_evidence(source) as evidence:
            for part in PARTS:
                part(surfaces, evidence, place)
    of_sql(surfaces, open_lake(lake))
    of_tables(surfaces, open_lake(lake))
    return surfaces
