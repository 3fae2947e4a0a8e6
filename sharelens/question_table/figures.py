"""Questions about figures: lag, durations, deliveries, cost, and what other settings would have changed."""

from sharelens.question_table.kinds import Choice, Duration, Number
from sharelens.question_table.question import Parameter, Question, Value, flag, parts
from sharelens.question_table.rules import INTERVAL, Excludes, Needs
from sharelens.question_table.shared import (
    CUT,
    END_OFFSETS,
    KEYS,
    OUTPUT,
    REQUIRE_COMPLETE,
    SETTINGS_FILES,
    SOURCE,
    SPAN,
    interval,
)

LAG = Question(
    name="lag",
    summary="The lag of share groups.",
    help="""The lag of share groups: Kafka's figure (KIP-1226), a recount of the state batches, and why they differ.

    With --every, the lag at past moments; their end offsets are inferred from the batches' timestamps.
    """,
    examples=(
        "sharelens lag --lake ./lake --group orders-workers",
        "kafka-get-offsets.sh --bootstrap-server localhost:9092 > ends.txt",
        "sharelens lag --log-dir /var/kafka-copy --end-offsets ends.txt --output json",
        "sharelens lag --lake ./lake --group orders-workers --every 5m --from 2026-11-21T03:00:00Z",
    ),
    parameters=(
        *SOURCE,
        *KEYS,
        *CUT,
        END_OFFSETS,
        Parameter(
            "--every",
            name="every_ms",
            kind=Duration(takes_auto=True),
            metavar="DURATION",
            help="The lag over time, one moment each 30s, 5m, 1h or 1d; auto: a usual step with at most 120 moments.",
        ),
        *interval("With --every: moments from TIME on.", "With --every: moments before TIME."),
        REQUIRE_COMPLETE,
        *OUTPUT,
    ),
    function="sharelens.questions.lag:checked_lag",
    rows={
        "": "sharelens.questions.lag:LAYOUT",
        "at an earlier moment": "sharelens.questions.lag:EARLIER_LAYOUT",
        "with --every": "sharelens.questions.lag:OVER_TIME_LAYOUT",
    },
    variants={"every_ms": "sharelens.questions.lag:lag_over_time"},
    rules=(
        Needs(("from_ms", "to_ms"), ("every_ms",), "--from and --to go with --every; for one moment give --as-of"),
        Excludes(
            ("every_ms",),
            ("as_of_ms", "at_offset", "end_offsets"),
            "--every excludes --as-of, --at-offset and --end-offsets; leave them out",
        ),
        INTERVAL,
    ),
)

BY = Parameter(
    "--by",
    part_of=(Value(argument="by", make="sharelens.questions.latency:grouping"),),
    kind=Choice(("partition", "hour")),
    is_repeatable=True,
    help="One row a partition, or one row an hour (UTC) of the outcome. Repeatable.",
)
LATENCY = Question(
    name="latency",
    summary="Time from a record's timestamp to its outcome.",
    help="""Time from a record's timestamp to acknowledged or archived: percentiles by group and topic, and throughput.

    An age has two bounds: the topic's batch headers have the timestamps of a batch, not of each record. Percentiles are
    bucket edges, at most 5 % apart. An offset counts once a life, at its first outcome. --from and --to bound the log
    time of the outcome.
    """,
    examples=(
        "sharelens latency --lake ./lake --group orders-workers --by hour",
        "sharelens latency --log-dir /var/kafka-copy --topic orders:0 --ranges --output json",
    ),
    parameters=(
        flag("--ranges", "List ranges of offsets with the bounds of their ages, the largest first."),
        flag("--exact", "Exact percentiles from the histories: slower, and without rows that retention dropped."),
        *SOURCE,
        *KEYS,
        *CUT,
        *SPAN,
        BY,
        REQUIRE_COMPLETE,
        *OUTPUT,
    ),
    function="sharelens.questions.latency:latency",
    rows={
        "": "sharelens.questions.latency:LAYOUT",
        "with --ranges": "sharelens.questions.latency:RANGE_LAYOUT",
    },
    variants={"ranges": "sharelens.questions.latency:ranges"},
    rules=(
        Excludes(("ranges",), ("by",), "--ranges has no totals; leave out --by"),
        Excludes(("ranges",), ("exact",), "--ranges is always exact; leave out --exact"),
        INTERVAL,
    ),
)

ATTEMPTS = Question(
    name="attempts",
    summary="Number of deliveries of records.",
    help="""Distribution of delivery counts by group, topic and outcome, and the number of redeliveries.

    An offset counts once a life, with its largest delivery count. --from and --to bound the log time of the outcome.
    """,
    examples=(
        "sharelens attempts --lake ./lake --group orders-workers",
        "sharelens attempts --log-dir /var/kafka-copy --by partition --output csv",
    ),
    parameters=(*SOURCE, *KEYS, *CUT, *SPAN, BY, REQUIRE_COMPLETE, *OUTPUT),
    function="sharelens.questions.latency:attempts",
    rows={"": "sharelens.questions.latency:ATTEMPTS_LAYOUT"},
    rules=(INTERVAL,),
)

COST = Question(
    name="cost",
    summary="The cost of share state for its coordinator.",
    help="""The cost of share state: records and bytes per acknowledged record, updates between snapshots, pruning.

    --from and --to bound the log time of the state records.
    """,
    examples=("sharelens cost --lake ./lake", "sharelens cost --log-dir /var/kafka-copy --state-partitions"),
    parameters=(
        *SOURCE,
        *KEYS,
        *CUT,
        *SPAN,
        flag(
            "--state-partitions",
            "One row a state partition: bytes that pruning can free, and the share partition that blocks it.",
        ),
        flag(
            "--compare-early-draft",
            "Beside it the cost of the same writes under KIP-932's early design.",
            "is_compared",
        ),
        REQUIRE_COMPLETE,
        *OUTPUT,
    ),
    function="sharelens.questions.cost:cost",
    rows={
        "": "sharelens.questions.cost:LAYOUT",
        "with --state-partitions": "sharelens.questions.cost:PRUNING_LAYOUT",
        "with --compare-early-draft": "sharelens.questions.cost_compared:LAYOUT",
    },
    variants={
        "is_compared": "sharelens.questions.cost_compared:cost_compared",
        "state_partitions": "sharelens.questions.cost:pruning",
    },
    rules=(
        INTERVAL,
        Excludes(
            ("state_partitions",),
            ("groups", "topics", "partitions"),
            "--state-partitions counts whole state partitions; leave out --group, --topic, --partition",
        ),
        Excludes(
            ("state_partitions",),
            ("from_ms", "to_ms"),
            "--state-partitions has no interval; leave out --from and --to, or give --as-of for a moment",
        ),
        Excludes(
            ("is_compared",),
            ("state_partitions", "from_ms", "to_ms"),
            "--compare-early-draft takes whole histories; leave out --state-partitions, --from, --to",
        ),
    ),
)

_SETTING = Value(argument="setting", make="sharelens.questions.what_if_settings:other_setting", is_after_rules=True)
WHAT_IF = Question(
    name="what-if",
    summary="The same history under another setting.",
    help="""Replays a recorded history under another setting: each figure as it was and as it would have been.

    A figure is exact, a bound (the true figure lies between the two), or inferred: an estimate from what the log shows
    only in part, so that the true figure may lie outside.
    """,
    examples=(
        "sharelens what-if --snapshot-update-records 100 --lake ./lake",
        "sharelens what-if --delivery-count-limit 3 --lake ./lake --group orders-workers --list",
        "sharelens what-if --lock-duration 60s --lake ./lake --group orders-workers",
        "sharelens what-if --isolation-level read_committed --log-dir /var/kafka-copy --output json",
    ),
    parameters=(
        *SOURCE,
        *KEYS,
        *CUT,
        *parts(
            _SETTING,
            Parameter(
                "--snapshot-update-records",
                kind=Number(),
                metavar="N",
                help="Updates between two snapshots: share.coordinator.snapshot.update.records.per.snapshot, 0 to 500.",
            ),
            Parameter(
                "--delivery-count-limit",
                kind=Number(),
                metavar="N",
                help="Deliveries after which a released record is archived: share.delivery.count.limit, 2 to 25.",
            ),
            Parameter(
                "--lock-duration",
                kind=Duration(bare_unit="ms", least_ms=0),
                metavar="DURATION",
                help="How long a record stays acquired without an acknowledgement: share.record.lock.duration.ms, 1s "
                "to 1h.",
            ),
            Parameter(
                "--isolation-level",
                metavar="LEVEL",
                help="Which records of transactions are delivered: share.isolation.level, read_committed or "
                "read_uncommitted.",
            ),
        ),
        *SETTINGS_FILES,
        *parts(
            _SETTING,
            Parameter(
                "--state-partitions",
                kind=Number(),
                metavar="N",
                help="Partitions of __share_group_state: share.coordinator.state.topic.num.partitions, at least 1.",
            ),
            flag(
                "--list",
                "What changes, one by one: ranges of offsets (--delivery-count-limit, --isolation-level), or share "
                "partitions (--state-partitions).",
                "is_listed",
            ),
        ),
        REQUIRE_COMPLETE,
        *OUTPUT,
    ),
    function="sharelens.questions.what_if_settings:replay",
    rows={
        "": "sharelens.questions.what_if:LAYOUT",
        "with --list": "sharelens.questions.what_if:OUTCOME_LAYOUT",
        "with --state-partitions": "sharelens.questions.what_if_placement:BALANCE_LAYOUT",
        "with --state-partitions --list": "sharelens.questions.what_if_placement:PLACEMENT_LAYOUT",
    },
)

ADVISE = Question(
    name="advise",
    summary="Settings that the history suggests, with the evidence.",
    help="""Settings that a recorded history suggests: the evidence for each, and what it would have changed.

    Delivery count limits, lock durations, missing dead-letter topics, the interval of snapshots, the number of state
    partitions. No advice without evidence.
    """,
    examples=(
        "sharelens advise --lake ./lake",
        "sharelens advise --log-dir /var/kafka-copy --group-configs groups.txt --broker-config server.properties",
    ),
    parameters=(*SOURCE, *KEYS, *CUT, *SETTINGS_FILES, *OUTPUT),
    function="sharelens.questions.advise:advise",
    rows={"": "sharelens.questions.advise:LAYOUT"},
)

STATUS = Question(
    name="status",
    summary="Extent and gaps of the evidence.",
    help="The evidence: state partitions with their log times, gaps, quarantine, last runs, versions.",
    examples=("sharelens status --lake ./lake", "sharelens status --log-dir /var/kafka-copy --output json"),
    parameters=(*SOURCE, *OUTPUT),
    function="sharelens.questions.status:status",
    rows={
        "state_partitions": "sharelens.questions.status:LAYOUT",
        "sources": "sharelens.questions.status:SOURCE_LAYOUT",
        "gaps": "sharelens.questions.status:GAP_LAYOUT",
        "missing_states": "sharelens.questions.missing_states:LAYOUT",
        "quarantine": "sharelens.questions.status:QUARANTINE_LAYOUT",
        "metadata_log": "sharelens.questions.status:METADATA_LAYOUT",
        "settings": "sharelens.questions.status:SETTINGS_LAYOUT",
        "runs": "sharelens.questions.status:RUN_LAYOUT",
        "closed_gates": "sharelens.questions.status:GATE_LAYOUT",
        "tables": "sharelens.questions.status:TABLE_LAYOUT",
    },
)

FIGURES = (LAG, LATENCY, ATTEMPTS, COST, WHAT_IF, ADVISE)
