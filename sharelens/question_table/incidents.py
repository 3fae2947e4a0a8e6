"""Questions of an incident."""

from dataclasses import replace

from sharelens.question_table.kinds import Choice, Duration
from sharelens.question_table.question import Parameter, Question, Reads, Value, flag, parts
from sharelens.question_table.rules import INTERVAL, Excludes, Needs, OneOf
from sharelens.question_table.shared import (
    CUT,
    DEAD_LETTER_TOPICS,
    FAIL_ON,
    KEYS,
    MIN_DURATION,
    NOW,
    OUTPUT,
    REQUIRE_COMPLETE,
    SETTINGS_FILES,
    SHORTEST_STALL,
    SOURCE,
    SPAN,
    SUPPRESSIONS,
)
from state_model.audit.severities import SEVERITIES, VERSIONS

OVERVIEW = Question(
    name="overview",
    summary="What is wrong now, the worst first, and one line a group.",
    help="""What is wrong now, the worst first: stalls, groups without members, missing dead letters, growing lag,
    resets, archived and repeated records, gaps in the evidence; each with the command that explains it. Then one line a
    group. Consumer groups have a list of their own and count with --all-groups.

    Recent is the hour before now, or before --as-of; a larger lag than ten minutes ago (of a lake: than at an earlier
    publication) grows.
    """,
    examples=("sharelens overview --lake ./lake", "sharelens overview --log-dir /var/lib/kafka/data --watch 10s"),
    parameters=(
        *SOURCE,
        *DEAD_LETTER_TOPICS,
        *KEYS,
        *CUT,
        *NOW,
        SHORTEST_STALL,
        *SETTINGS_FILES,
        flag("--all-groups", "Consumer groups count, too: in the findings, the first line and the exit code."),
        Parameter(
            "--watch",
            kind=Duration(bare_unit="s"),
            metavar="DURATION",
            is_for_surface=True,
            help="Show it again after each DURATION, as 10s.",
        ),
        replace(
            flag("--no-color", "No colours on a terminal; the variable NO_COLOR does the same."), is_for_surface=True
        ),
        Parameter(
            "--fail-on",
            kind=Choice(("error", "warning", "not-judged")),
            bare_value="warning",
            is_for_surface=True,
            help="Exit with 3 when there is a finding of this severity or a worse one (without a value: warning), with "
            "4 when there is none and something that may be one is not judged. not-judged: then with 3, too.",
        ),
        replace(flag("--allow-unknown", "With --fail-on, exit with 0 where nothing is found."), is_for_surface=True),
        *OUTPUT,
    ),
    function="sharelens.questions.findings.overview:overview",
    rules=(Needs(("allow_unknown",), ("fail_on",), "--allow-unknown goes with --fail-on"),),
    rows={
        "findings": "sharelens.questions.findings.overview:FINDING_LAYOUT",
        "groups": "sharelens.questions.findings.overview:GROUP_LAYOUT",
        "consumer_groups": "sharelens.questions.findings.overview:CONSUMER_LAYOUT",
    },
    reads=Reads.STATE_LOG_OR_GROUP_LOG,
    findings="findings",
    count_findings="sharelens.questions.findings.overview:counted_findings",
)

TIMELINE = Question(
    name="timeline",
    summary="What happened to groups, in the order of time.",
    help="""What happened to groups, in the order of time: creations, resets and deletions, members and epochs, stalls,
    gaps of the state log, and minute by minute archived, repeated and dead-lettered records. Of a consumer or
    streams group also rebalances with the partitions or tasks that moved, offsets that were reset, topics that regular
    expressions match, topologies, and times in which it was not ready. Each entry names the record that proves it.

    --from and --to bound the times of the entries. The last lines count the entries of each group.
    """,
    examples=(
        "sharelens timeline --lake ./lake --group orders-workers --from -1h",
        "sharelens timeline --log-dir /var/kafka-copy --from 03:20 --to 03:40",
        "sharelens timeline --log-dir /var/kafka-copy --group orders-workers --topic orders:0",
    ),
    parameters=(*SOURCE, *DEAD_LETTER_TOPICS, *KEYS, *CUT, *NOW, *SPAN, MIN_DURATION, *SETTINGS_FILES, *OUTPUT),
    function="sharelens.questions.timelines.timeline:timeline",
    rows={"": "sharelens.questions.timelines.timeline:LAYOUT"},
    rules=(INTERVAL,),
    reads=Reads.STATE_LOG_OR_GROUP_LOG,
)

STALLED = Question(
    name="stalled",
    summary="Stalls: share partitions without progress, since when, at which record.",
    help="""Intervals in which a share partition with a backlog made no progress: its first incomplete offset did not
    move.

    The longest come first. Kinds: dead_letter_pending, window_full, blocked_by_record, silent_with_backlog. --from and
    --to select intervals that overlap that time.
    """,
    examples=(
        "sharelens stalled --lake ./lake --min-duration 5m",
        "sharelens stalled --log-dir /var/kafka-copy --group orders-workers --broker-config server.properties",
    ),
    parameters=(
        *SOURCE,
        *KEYS,
        *CUT,
        *NOW,
        *SPAN,
        MIN_DURATION,
        flag("--idle", "Include share partitions without a backlog (kind idle)."),
        *SETTINGS_FILES,
        FAIL_ON,
        REQUIRE_COMPLETE,
        *OUTPUT,
    ),
    function="sharelens.questions.stalled:stalled",
    rows={"": "sharelens.questions.stalled:LAYOUT"},
    rules=(INTERVAL,),
    findings="stalls",
)
PINNED = replace(
    STALLED,
    name="pinned",
    summary="Stalls that still last.",
    help="Stalls that last until the evidence was read (or at --as-of), the longest first.",
    examples=("sharelens pinned --lake ./lake --fail-on",),
    rows={"": "sharelens.questions.stalled:PINNED_LAYOUT"},
    fixed={"still_only": True},
)

POISON = Question(
    name="poison",
    summary="Records that groups archived, and why.",
    help="""Records that a group archived: rejected, or at the delivery count limit; with the source of the limit.

    --from and --to bound the log time of the last outcome.
    """,
    examples=(
        "sharelens poison --lake ./lake --group orders-workers --broker-config server.properties",
        "kafka-configs.sh --bootstrap-server localhost:9092 --describe --entity-type groups > groups.txt",
        "sharelens poison --log-dir /var/kafka-copy --group-configs groups.txt --near-limit",
    ),
    parameters=(
        *SOURCE,
        *KEYS,
        *CUT,
        *SPAN,
        flag("--near-limit", "Include records that the next failed delivery archives."),
        flag("--gaps", "Include archived offsets without a record (control records, compacted ones)."),
        *SETTINGS_FILES,
        FAIL_ON,
        REQUIRE_COMPLETE,
        *OUTPUT,
    ),
    function="sharelens.questions.dead_letters.poison:poison",
    rows={"": "sharelens.questions.dead_letters.poison:LAYOUT"},
    rules=(INTERVAL,),
    findings="ranges of records were archived",
)

DLQ = Question(
    name="dlq",
    summary="Dead letters: matched, missing, duplicate; bursts; the redrive plan.",
    help="""Dead letters compared with archived records: matched, duplicate, missing, unexpected, archiving or unknown.

    A dead letter is due for a record in state ARCHIVING (Kafka 4.4). The command searches topics whose name begins with
    dlq., and those of --dlq-topic and --dlq-prefix, for records with headers __dlq.errors.*. --from and --to bound the
    time of the dead letter, or of archiving where there is none. --fail-on: missing, duplicate or unexpected.
    """,
    examples=(
        "sharelens dlq --lake ./lake --group orders-workers",
        "sharelens dlq --log-dir /var/kafka-copy --group-configs groups.txt --status missing --fail-on",
        "sharelens dlq --lake ./lake --bursts --gap 30s",
        "sharelens dlq plan --lake ./lake --group orders-workers --out redrive.json",
    ),
    parameters=(
        *SOURCE,
        *parts(
            Value(argument="topics", make="sharelens.source.request:limiting_topics", is_after_rules=True),
            *DEAD_LETTER_TOPICS,
        ),
        *KEYS,
        *CUT,
        *SPAN,
        Parameter(
            "--status",
            name="statuses",
            metavar="STATUS",
            is_repeatable=True,
            help="Only this status (missing, duplicate...). Repeatable.",
        ),
        flag("--bursts", "Group dead letters that are close in time.", "as_bursts"),
        Parameter(
            "--gap",
            name="gap_ms",
            kind=Duration(),
            metavar="DURATION",
            help="The longest pause inside a burst  [default: 1m]",
        ),
        *SETTINGS_FILES,
        FAIL_ON,
        REQUIRE_COMPLETE,
        *OUTPUT,
    ),
    function="sharelens.questions.dead_letters.dlq:dlq",
    rows={
        "": "sharelens.questions.dead_letters.columns:LAYOUT",
        "with --bursts": "sharelens.questions.dead_letters.columns:BURST_LAYOUT",
    },
    variants={"as_bursts": "sharelens.questions.dead_letters.dlq:bursts"},
    rules=(
        INTERVAL,
        OneOf("statuses", "--status", "sharelens.measures.dlq.schemas:STATUSES", "status; there are {words}"),
        Needs(("gap_ms",), ("as_bursts",), "--gap goes with --bursts"),
        Excludes(
            ("as_bursts",),
            ("statuses", "fail_on"),
            "--bursts counts dead letters of every status; leave out --status and --fail-on",
        ),
    ),
    findings="rows missing, duplicate or unexpected",
    count_findings="sharelens.questions.dead_letters.dlq:findings",
)

REDELIVERED = Question(
    name="redelivered",
    summary="Records that were delivered more than once.",
    help="""Record offsets that were delivered more than once, by kind, with the state log records as evidence.

    Kinds: retry, delivered_after_acknowledged, replayed_by_reset, replayed_by_recreation, start_went_back. --from and
    --to bound the log time of the later delivery's newest outcome.
    """,
    examples=(
        "sharelens redelivered --lake ./lake --group orders-workers",
        "sharelens redelivered --log-dir /var/kafka-copy --kind delivered_after_acknowledged --fail-on",
    ),
    parameters=(
        *SOURCE,
        *KEYS,
        *CUT,
        *SPAN,
        Parameter(
            "--kind",
            name="kinds",
            metavar="KIND",
            is_repeatable=True,
            help="Only this kind (retry, replayed_by_reset, ...). Repeatable.",
        ),
        FAIL_ON,
        REQUIRE_COMPLETE,
        *OUTPUT,
    ),
    function="sharelens.questions.redelivered:redelivered",
    rows={"": "sharelens.questions.redelivered:LAYOUT"},
    rules=(INTERVAL, OneOf("kinds", "--kind", "sharelens.measures.schemas:REDELIVERIES", "kind; kinds: {words}")),
    findings="ranges of record offsets were delivered more than once",
)

_AUDIT_CHOICE = Value(argument="choice", make="sharelens.questions.audits.choice:audit_choice", is_after_rules=True)
AUDIT = Question(
    name="audit",
    summary="Whether the share coordinators behaved: their invariants over the state log.",
    help="""Tests the invariants of the share coordinator on every record of the state log, and lists the violations
    with the records that prove them. An error is what no healthy broker writes; a warning is legal, but has a cause
    that is worth knowing.

    Rules that need evidence that is missing are named as not tested. --from and --to bound the log time of the
    violations; the log is always read from its beginning. Suppressed findings are not listed, and don't count for
    --fail-on. Log directories of another cluster than that of the state log are a finding.

    A lake has the findings of its runs, with the settings that it keeps. There --from and --to choose the findings
    that were seen in that time, with their counts over all time.
    """,
    examples=(
        "sharelens audit --lake ./lake --kafka-version 4.3",
        "sharelens audit --log-dir /var/kafka-copy --group orders-workers --fail-on error",
        "sharelens audit --log-dir /var/kafka-copy --suppressions known.yaml --show-suppressed",
        "sharelens audit --explain snapshot_epoch_skips",
    ),
    parameters=(
        *SOURCE,
        *KEYS,
        *SPAN,
        *SETTINGS_FILES,
        *parts(
            _AUDIT_CHOICE,
            Parameter(
                "--rule", metavar="RULE", is_repeatable=True, help="Only this rule: its code or number. Repeatable."
            ),
            Parameter(
                "--kafka-version",
                kind=Choice(VERSIONS),
                help="The version of the brokers that wrote the log, if it is one; without it the lowest "
                "severity of all versions counts.",
            ),
            Parameter(
                "--severity",
                kind=Choice(SEVERITIES),
                default="warning",
                shown_default="warning",
                help="List findings of this severity and worse ones.",
            ),
            SUPPRESSIONS,
            flag("--show-suppressed", "Also list the suppressed findings, with their reasons."),
            Parameter(
                "--explain",
                metavar="RULE",
                is_for_surface=True,
                effect="state_model.audit.explanation:explained",
                help="Print why a rule holds, the evidence it needs, and what to do, or what a cause is; reads no log.",
            ),
            Parameter(
                "--fail-on", kind=Choice(SEVERITIES), help="Exit with 3 on a finding of this severity or a worse one."
            ),
        ),
        *OUTPUT,
    ),
    function="sharelens.questions.audits.audit:checked_audit",
    rows={
        "findings": "sharelens.questions.audits.audit:LAYOUT",
        "suppressed": "sharelens.questions.audits.audit:SUPPRESSED_LAYOUT",
        "not_tested": "sharelens.questions.audits.audit:UNTESTED_LAYOUT",
    },
    rules=(INTERVAL,),
    reads=Reads.LOGS_OF_SEVERAL_CLUSTERS,
    findings="findings",
    count_findings="sharelens.questions.audits.audit:findings_from",
)

INCIDENTS = (OVERVIEW, TIMELINE, STALLED, PINNED, POISON, DLQ, REDELIVERED, AUDIT)
