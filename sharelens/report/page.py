"""Puts a page together and renders it: one HTML file that loads nothing, and runs no script but its own."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow.compute as pc
from markupsafe import Markup

from sharelens import __version__
from sharelens.findings.signs import Audited
from sharelens.groups.schemas import SHARE
from sharelens.measures.stalls.intervals import MIN_DURATION_MS
from sharelens.output import Answer, Row
from sharelens.output.wording import counted, moment, name, number, place
from sharelens.parameters.times import duration_text, lasted, time_text
from sharelens.questions.answers.command_lines import command, cut_options
from sharelens.questions.answers.share_partitions import Key, key_of
from sharelens.questions.audits.audit import published_answer
from sharelens.questions.stalled import WHAT_IT_MAY_BE
from sharelens.questions.status import gaps_part, partitions_part
from sharelens.report import bands, colours, figures
from sharelens.report.answer_sheets import RECORD_OFFSETS, answer_sheets
from sharelens.report.findings import SECTION_OF, Anchors, findings, tiles
from sharelens.report.gather import Gathered, trace_of
from sharelens.report.model import Page, Section, Sheet
from sharelens.report.modelled_groups import consumer_sections, streams_sections
from sharelens.report.orders import ROWS_SHOWN
from sharelens.report.pictures import CountsPicture
from sharelens.report.rendering import environment, script_digest, text_of
from sharelens.report.unknowable import CANNOT_KNOW, CANNOT_KNOW_OF_CONSUMERS, CANNOT_KNOW_OF_STREAMS, NOT_THERE
from sharelens.source.request import Source
from sharelens.tables.cover import StatePartitionCover

EVENTS_SHOWN = 40
SAID_ELSEWHERE = {"GROUP", "TOPIC", "PARTITION", "RECORD-OFFSET", "UNTIL-STATE-LOG-OFFSET"}
HOW_TO_READ = "A pin is a line that runs to the right at one offset while the offsets above it are done."
PARAMETERS: Mapping[str, Sequence[str]] = {
    "overview": ("filters", "cut"),
    "stalled": ("filters", "cut", "span", "least"),
    "redelivered": ("filters", "cut", "span"),
    "poison": ("filters", "cut", "span"),
    "dlq": ("letter_topics", "filters", "cut", "span"),
    "life": ("filters", "cut", "span"),
    "audit": ("filters",),
    "status": (),
}
"""The parameters of a report that each question takes; the audit is up to the end of the evidence."""
CAPTIONS = {
    "stalled": "Stalls, those that still last first",
    "redelivered": "Redelivered records by group and kind",
    "poison": "Archived records: groups with problems now first, then the newest",
    "dlq": "Dead letters and archived records, problems first",
    "life": "Lives of share partitions: groups with problems now first, then the newest",
}
GROUPS_SHOWN, PARTS_SHOWN = 500, 60
NO_STATE = "No delivery state was ever written."
NOT_AUDITED = "Nobody has audited this evidence. A run audits its lake; log directories are audited by the command."


def build(gathered: Gathered, source: Source, written_ms: int) -> Page:
    """The page. `written_ms`: wall clock; it shows in one place alone."""
    line, age_ms = _Commands(source, gathered), max(0, written_ms - gathered.times.last_ms)
    traces = _traces(gathered, line)
    anchors = {where: f"#{sheet.name}" for where, sheet in traces}
    return Page(
        title=_title(gathered),
        scope=_scope(gathered),
        facts=_facts(gathered),
        written=f"Written {moment(written_ms)} UTC, {lasted(age_ms)} after the cut.",
        findings=findings(gathered, anchors, line.asking),
        tiles=tiles(gathered),
        sections=_sections(gathered, line, anchors, [sheet for _, sheet in traces]),
        version=__version__,
    )


def _title(gathered: Gathered) -> str:
    cluster = gathered.evidence.cluster_id
    groups = f"{(gathered.other_groups_alone or SHARE).title()} groups"
    return groups if cluster in (None, "unknown") else f"{groups} of {name(cluster)}"


class _Commands:
    """Command lines for details that the page omits, for the same evidence and cut."""

    def __init__(self, source: Source, gathered: Gathered) -> None:
        self._source, self._cut = source, gathered.question.cut
        key_filter, span = gathered.question.key_filter, gathered.question.span
        filters = [f"--group={group}" for group in sorted(key_filter.groups)]
        filters += [
            f"--topic={topic.text}" + (":" + ",".join(map(str, sorted(topic.partitions))) if topic.partitions else "")
            for topic in key_filter.topics
        ]
        filters += [f"--partition={partition}" for partition in sorted(key_filter.partitions)]
        letter_topics = [f"--dlq-topic={topic}" for topic in source.dlq_topics]
        letter_topics += [] if source.dlq_prefix is None else [f"--dlq-prefix={source.dlq_prefix}"]
        bounds = [] if span.from_ms is None else [f"--from={time_text(span.from_ms)}"]
        bounds += [] if span.to_ms is None else [f"--to={time_text(span.to_ms)}"]
        least_ms = gathered.question.least_stall_ms
        least = [] if least_ms == MIN_DURATION_MS else [f"--min-duration={duration_text(least_ms)}"]
        self._options = {
            "filters": filters, "letter_topics": letter_topics, "span": bounds, "least": least,
            "cut": cut_options("report", self._cut),
        }  # fmt: skip

    def asking(self, question: str, words: Iterable[str]) -> str:
        """A question with these options, at the cut of the report."""
        return command(self._source, question, [*words, *cut_options(question, self._cut)])

    def of(self, question: str) -> str:
        """The question that a part of the page answers, with the parameters of the report that it takes."""
        return command(self._source, question, [word for name in PARAMETERS[question] for word in self._options[name]])

    def timeline(self, group: str) -> str:
        """The whole timeline of a group."""
        options = self._options
        filters = [word for word in options["filters"] if not word.startswith("--group=")]
        words = [f"--group={group}", *([] if filters else options["letter_topics"]), *filters]
        return command(self._source, "timeline", [*words, *options["cut"], *options["span"], *options["least"]])

    def rebalances(self, group: str) -> str:
        """The rebalances of a group."""
        return command(self._source, "rebalances", [f"--group={group}", *self._options["span"]])

    def trace(self, key: Key | None, offset: int) -> str:
        """The life of one record; without a key one with words to fill in."""
        if key is None:
            return command(self._source, "trace", ["--group=GROUP", "--topic=TOPIC", "--partition=N", "--offset=O"])
        group, topic, partition = key
        options = [f"--group={group}", f"--topic={topic}", f"--partition={partition}", f"--offset={offset}"]
        return command(self._source, "trace", options)


def _scope(gathered: Gathered) -> str:
    """The report's filter in words; empty without a filter."""
    key_filter = gathered.question.key_filter
    if key_filter.keeps_all:
        return ""
    parts = [f"group {name(group)}" for group in sorted(key_filter.groups)]
    parts += [f"topic {name(topic.text)}" for topic in key_filter.topics]
    parts += [f"partition {partition}" for partition in sorted(key_filter.partitions)]
    return ", ".join(parts)


def _facts(gathered: Gathered) -> Sequence[tuple[str, str]]:
    """The header's facts."""
    cut = gathered.question.cut
    first_ms, last_ms = gathered.signs.first_ms, gathered.times.last_ms
    span = f"{moment(first_ms)} – {moment(last_ms)} UTC ({lasted(last_ms - first_ms)})"
    as_of = "end of the evidence"
    if cut.as_of_ms is not None:
        as_of = f"as of {moment(cut.as_of_ms)} UTC"
    elif cut.at_offsets:
        as_of = "offsets of the state log"
    gaps = sum(len(part.gaps) for part in gathered.signs.cover)
    quarantined = sum(part.quarantined for part in gathered.signs.cover)
    back = sum(part.held_back for part in gathered.signs.cover)
    return (
        ("Cluster", name(gathered.evidence.cluster_id)),
        ("Evidence", span),
        ("Cut", as_of),
        ("State partitions", number(len(gathered.signs.cover))),
        ("Gaps", f"{number(gaps)} · {number(quarantined)} quarantined · {number(back)} held back"),
        ("Source", gathered.evidence.place),
    )


def _sections(gathered: Gathered, line: _Commands, anchors: Anchors, traces: Sequence[Sheet]) -> Sequence[Section]:
    of_share_groups = (*_state_sections(gathered, line), *_event_sections(gathered, line, anchors))
    return (
        *(() if gathered.other_groups_alone else of_share_groups),
        *streams_sections(gathered.streams, gathered.answers["streams_groups"], line.rebalances),
        *consumer_sections(gathered.consumers, gathered.answers["consumer_groups"], line.rebalances),
        _audit_section(gathered.signs.audited, line.of("audit")),
        *_evidence_sections(gathered, line, traces),
    )


def _state_sections(gathered: Gathered, line: _Commands) -> Sequence[Section]:
    lag, maps = gathered.pictures.lag, figures.state_maps(gathered)
    worst = counted(len({figure.name[:5] for figure in maps}), "share partition")
    groups = answer_sheets(
        gathered.answers["groups"], name="groups-table", caption="Share groups, the worst first",
        row_limit=GROUPS_SHOWN, command=line.of("overview"),
    )  # fmt: skip
    return (
        Section(name="groups", title="Groups", sheets=groups),
        Section(
            name="timeline",
            title="What happened",
            paragraphs=() if gathered.pictures.timelines else ("Nothing happened.",),
            figures=bands.bands(gathered),
            sheets=bands.timeline_sheets(gathered, line.timeline),
        ),
        Section(
            name="lag",
            title="Lag",
            paragraphs=() if lag else ("No lag is known at any moment: see below why.",),
            figures=(figures.lag_chart("lag-chart", lag),) if lag else (),
            points=_unknown_lags(gathered.answers["lag"]),
        ),
        Section(
            name="maps",
            title="State of the offsets",
            paragraphs=(f"The {worst} with the worst of what is open now. {HOW_TO_READ}" if maps else NO_STATE,),
            figures=maps,
        ),
    )


def _unknown_lags(lags: Answer) -> Sequence[str]:
    """Why lags are unknown, and of how many share partitions."""
    rows = lags.table.filter(pc.field("lag").is_null()).group_by("unknown_reason").aggregate([([], "count_all")])
    return [
        f"Unknown for {counted(row['count_all'], 'share partition')}: {str(row['unknown_reason']).replace('_', ' ')}."
        for row in rows.sort_by("unknown_reason").to_pylist()
    ]


def _event_sections(gathered: Gathered, line: _Commands, anchors: Anchors) -> Sequence[Section]:
    answers, outcomes = gathered.answers, CountsPicture(records=gathered.pictures.outcomes)
    counts = figures.delivery_counts("delivery-counts", outcomes)

    def href(row: Row, field: str) -> str | None:
        offset = row[field] if field in RECORD_OFFSETS else None
        return anchors.get((key_of(row), offset)) if isinstance(offset, int) else None

    def section(question: str, title: str, **parts: Any) -> Section:
        answer, caption = answers[question], CAPTIONS[question]
        name = SECTION_OF.get(question, question)
        rows = answer.digest if question == "redelivered" and answer.digest else answer
        sheets = answer_sheets(
            rows, name=f"{name}-table", caption=caption, row_limit=ROWS_SHOWN, command=line.of(question), href=href
        )
        totals = tuple((answer.summary or "").splitlines()[:1])
        return Section(name=name, title=title, paragraphs=totals, sheets=sheets, **parts)

    return (
        section("stalled", "Stalls", points=_stall_kinds(answers["stalled"])),
        section("redelivered", "Deliveries", figures=(counts,) if counts else ()),
        section("poison", "Archived records"),
        section("dlq", "Dead letters"),
        section("life", "Lives"),
    )


def _stall_kinds(answer: Answer) -> Sequence[str]:
    """Possible causes of each stall kind, and what to check."""
    there = set(answer.sums.column("kind").unique().to_pylist())
    return [
        f"{kind.replace('_', ' ')}: {words.replace('`', '')}."
        for kind, words in WHAT_IT_MAY_BE.items()
        if kind in there
    ]


def _audit_section(audited: Audited | None, command: str) -> Section:
    """What coordinators wrote that they must not write, or that has a cause; `command` answers for all of it."""
    if audited is None:
        return Section(name="audit", title="Audit", paragraphs=(NOT_AUDITED,), commands=(command,))
    answer, caption = published_answer(audited), "Findings of the audit, errors first"
    words = (answer.summary or "",)
    if audited.rows.num_rows == 0:
        return Section(name="audit", title="Audit", paragraphs=words, commands=(command,))
    sheets = answer_sheets(answer, name="audit-table", caption=caption, row_limit=ROWS_SHOWN, command=command)
    return Section(name="audit", title="Audit", paragraphs=words, sheets=sheets)


def _evidence_sections(gathered: Gathered, line: _Commands, traces: Sequence[Sheet]) -> Sequence[Section]:
    of_traces = Section(
        name="traces",
        title="Traces",
        paragraphs=("The life of the records that block a share partition, and of the newest archived ones.",)
        if traces
        else ("No record stands out. For any one:",),
        sheets=traces,
        commands=(line.trace(None, 0),),
    )
    cover, command = gathered.signs.cover, line.of("status")
    partitions = answer_sheets(
        partitions_part(gathered.evidence, sorted(cover, key=_worst_covered)), name="evidence-table",
        caption="State partitions in evidence, those with gaps first", row_limit=PARTS_SHOWN, command=command,
    )  # fmt: skip
    gaps = answer_sheets(
        gaps_part({gathered.evidence.cluster_id: cover}), name="gaps-table",
        caption="Gaps: state-log offsets that the evidence lacks", row_limit=ROWS_SHOWN, command=command,
    )  # fmt: skip
    return (
        *(() if gathered.other_groups_alone else (of_traces,)),
        Section(name="evidence", title="Freshness and gaps", sheets=(*partitions, *gaps)),
        Section(
            name="unknown",
            title="Not in the log",
            points=(*_cannot_know(gathered), *(f"In this evidence: {warning}." for warning in gathered.warnings)),
        ),
    )


def _worst_covered(part: StatePartitionCover) -> tuple[int, ...]:
    return -len(part.gaps), -part.quarantined, -part.held_back, part.state_partition


def _cannot_know(gathered: Gathered) -> Sequence[str]:
    of_share_groups = () if gathered.other_groups_alone else CANNOT_KNOW
    of_streams = CANNOT_KNOW_OF_STREAMS if gathered.streams.groups.num_rows else ()
    of_consumers = CANNOT_KNOW_OF_CONSUMERS if gathered.consumers.groups.num_rows else ()
    return (*of_share_groups, *of_streams, *of_consumers, *NOT_THERE)


def _traces(gathered: Gathered, line: _Commands) -> list[tuple[tuple[Key, int], Sheet]]:
    """The lives of the records that matter most."""
    return [
        ((key, offset), _trace_sheet(f"trace-{place_}", gathered, key, offset, line))
        for place_, (key, offset) in enumerate(gathered.traced, 1)
    ]


def _trace_sheet(name_: str, gathered: Gathered, key: Key, offset: int, line: _Commands) -> Sheet:
    answer = trace_of(gathered, key, offset)
    group, topic_id, partition = key
    where = place(gathered.signs.names.get(topic_id), topic_id, partition)
    outcome = (answer.summary or "").splitlines()[0]
    (sheet,) = answer_sheets(
        answer, name=name_, caption=f"{name(group)} · {where} · {outcome}", command=line.trace(key, offset),
        without=SAID_ELSEWHERE, row_limit=EVENTS_SHOWN,
    )  # fmt: skip
    return sheet


def render(page: Page) -> str:
    """The HTML. Names reach it as text alone: escaped by the template, or by the writer of the SVG."""
    script, style = text_of("script.js"), text_of("style.css")
    template = environment(text_of).get_template("page.html.j2")
    return template.render(
        page=page,
        style=Markup(style + colours.style_rules()),  # noqa: S704 - our own file
        script=Markup(script),  # noqa: S704 - our own file
        script_sha256=script_digest(script),
        drawing=Markup,
        lines=list(zip(colours.LINES, colours.DASHES, strict=True)),
    )
