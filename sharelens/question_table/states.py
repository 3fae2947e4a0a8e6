"""Questions about states, records and share partitions."""

from dataclasses import replace

from sharelens.parameters.filters import LAST_PARTITION
from sharelens.question_table.kinds import Duration, Number, Time
from sharelens.question_table.question import Parameter, Question, Value, flag, parts
from sharelens.question_table.rules import INTERVAL, OFFSETS, Excludes, OneOf
from sharelens.question_table.shared import (
    CUT,
    KEYS,
    LARGEST_OFFSET,
    MAX_LIMIT,
    OUTPUT,
    PARTITION,
    REQUIRE_COMPLETE,
    SOURCE,
    SPAN,
    SPAN_VALUE,
    TOPIC,
    VERBOSE,
    interval,
    offsets,
)

MOST_MOMENTS = 100_000
SHARE_PARTITION = parts(
    Value(argument="key_filter", make="sharelens.parameters.filters:parse_partition_filter"),
    Parameter("--group", metavar="GROUP", is_required=True, help="The share group."),
    Parameter(
        "--topic",
        metavar="TOPIC",
        is_required=True,
        help="The topic: NAME or ID, or NAME:0 with its partition.",
    ),
    Parameter(
        "--partition",
        kind=Number(least=0, largest=LAST_PARTITION),
        metavar="N",
        help="The partition; required unless --topic names it.",
    ),
)
"""One share partition."""

STATE = Question(
    name="state",
    summary="The state of share partitions, now or at a cut.",
    help="The state of share partitions: now, as of a time, or at offsets of the state log.",
    examples=(
        "sharelens state --lake ./lake --group orders-workers --output json",
        "sharelens state --log-dir /var/kafka-copy --at-offset 3:1200",
    ),
    parameters=(*SOURCE, *KEYS, *CUT, VERBOSE, REQUIRE_COMPLETE, *OUTPUT),
    function="sharelens.questions.state:checked_state",
    rows={"": "sharelens.questions.state:LAYOUT"},
)

RECORDS = Question(
    name="records",
    summary="Decoded records of the state log.",
    help="Decoded records of the state log, in (state partition, log offset) order.",
    examples=(
        "sharelens records --log-dir /var/kafka-copy --topic orders:0 --output jsonl",
        "sharelens records --lake ./lake --state-partition 3 --from-offset 1000 --to-offset 1100",
    ),
    parameters=(
        *SOURCE,
        *KEYS,
        *SPAN,
        *parts(
            SPAN_VALUE,
            *offsets("State log offsets", LARGEST_OFFSET),
            Parameter(
                "--state-partition",
                kind=Number(least=0, largest=LAST_PARTITION),
                is_repeatable=True,
                metavar="P",
                help="Only this partition of __share_group_state. Repeatable.",
            ),
        ),
        flag(
            "--early-draft",
            "Control records of KIP-932's early design in the partitions of user topics, instead of the state log.",
            "is_early_draft",
        ),
        VERBOSE,
        *OUTPUT,
    ),
    function="sharelens.questions.records:records",
    rows={
        "": "sharelens.questions.records:LAYOUT",
        "with --early-draft": "sharelens.questions.early_draft:LAYOUT",
    },
    variants={"is_early_draft": "sharelens.questions.early_draft:records"},
    rules=(
        INTERVAL,
        OFFSETS,
        Excludes(
            ("is_early_draft",),
            ("state_partition", "from_ms", "to_ms", "from_offset", "to_offset"),
            "--early-draft takes --group, --topic and --partition only; leave out the others",
        ),
    ),
)

TRACE = Question(
    name="trace",
    summary="The life of one record.",
    help="""The life of one record: each delivery state with its cause, the dead letter, and the start offset.

    The last line has the outcome, or why there is none: the topic's batch headers show what is at the offset.
    """,
    examples=("sharelens trace --lake ./lake --group orders-workers --topic orders --partition 0 --offset 4711",),
    parameters=(
        *SOURCE,
        *SHARE_PARTITION,
        Parameter(
            "--offset",
            kind=Number(least=0, largest=LARGEST_OFFSET),
            is_required=True,
            metavar="O",
            help="The record's offset.",
        ),
        flag("--members", "Add the members with the partition assigned at each event (inferred)."),
        REQUIRE_COMPLETE,
        *OUTPUT,
    ),
    function="sharelens.questions.traces.trace:trace",
    rows={"": "sharelens.questions.traces.trace:LAYOUT"},
)

MOMENTS = Question(
    name="moments",
    summary="The states of a share partition, one after the other.",
    help="""The states of a share partition in a window: the state before it, and what each record of the state log
    changed. Replayed in their order, the rows give the state after each record.

    With --from the first records from there on, else the newest ones before --to. End offsets are inferred from the
    timestamps of the topic's batches.
    """,
    examples=(
        "sharelens moments --lake ./lake --group orders-workers --topic orders:0 --from 03:20",
        "sharelens moments --log-dir /var/kafka-copy --group orders-workers --topic orders:0 --output json",
    ),
    parameters=(
        *SOURCE,
        *SHARE_PARTITION,
        *SPAN,
        *offsets("Record offsets", MAX_LIMIT),
        Parameter(
            "--records",
            name="record_limit",
            kind=Number(least=1, largest=MOST_MOMENTS),
            default=1000,
            shown_default="1000",
            metavar="N",
            help=f"Largest number of records of the state log, up to {MOST_MOMENTS:,}.",
        ),
        REQUIRE_COMPLETE,
        *OUTPUT,
    ),
    function="sharelens.questions.traces.moments:moments",
    rows={"": "sharelens.questions.traces.moments:LAYOUT"},
    rules=(INTERVAL, OFFSETS),
)

DIFF = Question(
    name="diff",
    summary="The changes between two moments.",
    help="The changes between two moments: scalars before and after, and record offsets whose delivery state differs.",
    examples=(
        "sharelens diff --lake ./lake --from 2026-11-21T05:00:00Z --to 2026-11-21T05:10:00Z --group orders-workers",
    ),
    parameters=(
        *SOURCE,
        *KEYS,
        *(
            replace(parameter, kind=Time(), is_required=True)
            for parameter in interval("The earlier moment (state as of TIME).", "The later moment (state as of TIME).")
        ),
        VERBOSE,
        REQUIRE_COMPLETE,
        *OUTPUT,
    ),
    function="sharelens.questions.timelines.diff:diff",
    rows={"": "sharelens.questions.timelines.diff:LAYOUT"},
)

_SOUGHT = Value(argument="sought", make="sharelens.questions.traces.sought:sought")
LOCATE = Question(
    name="locate",
    summary="Partition, offset and timestamp of user records.",
    help="""Partition, offset and timestamp of user records with a key or near a time; continue with `trace`.

    The command reads the topic's segments; it never stores or shows keys and values. A lake has no user records: there
    --around gives ranges of offsets from batch headers.
    """,
    examples=(
        "sharelens locate --log-dir /var/kafka-copy --topic orders --key order-4711",
        "sharelens locate --log-dir /var/kafka-copy --topic orders:0 --around 2026-11-21T03:10:00Z --within 5s",
        "sharelens locate --lake ./lake --topic orders --around 2026-11-21T03:10:00Z",
    ),
    parameters=(
        *SOURCE,
        *parts(
            Value(argument="key_filter", make="sharelens.parameters.filters:parse_topic_filter", is_after_rules=True),
            replace(TOPIC, name="", is_repeatable=False, is_required=True, help="The topic: NAME, ID or NAME:0,1."),
            replace(PARTITION, help="Only this partition. Repeatable."),
        ),
        *parts(
            _SOUGHT,
            Parameter("--key", metavar="TEXT", help="Records with this key, in UTF-8."),
            Parameter("--key-hex", metavar="HEX", help="Records with this key, in hexadecimal digits."),
            Parameter("--key-base64", metavar="BASE64", help="Records with this key, in Base64."),
            Parameter("--around", kind=Time(), metavar="TIME", help="Records with a timestamp near TIME."),
            Parameter(
                "--within",
                kind=Duration(),
                metavar="DURATION",
                help="Largest distance from --around: 500ms, 30s, 5m  [default: 1m]",
            ),
            *interval("With a key: timestamps from TIME on.", "With a key: timestamps before TIME."),
        ),
        REQUIRE_COMPLETE,
        *OUTPUT,
    ),
    function="sharelens.questions.traces.locate:locate",
    rows={"": "sharelens.questions.traces.locate:LAYOUT"},
    rules=(INTERVAL,),
)

ACCOUNT = Question(
    name="account",
    summary="The outcome of every record offset.",
    help="""The outcome of every record offset that was appended in a window: each offset has exactly one class.

    Times are those of the topic's batches, looked up as Kafka looks up offsets by time. Classes: acknowledged_once,
    acknowledged_after_retries, archived, open, below_first_start, skipped_by_reset, passed_without_outcome,
    not_in_evidence.
    """,
    examples=(
        "sharelens account --lake ./lake --group orders-workers",
        "sharelens account --log-dir /var/kafka-copy --topic orders:0 --class passed_without_outcome",
    ),
    parameters=(
        *SOURCE,
        *KEYS,
        *CUT,
        *parts(
            SPAN_VALUE,
            *interval("Records appended from TIME on.", "Records appended before TIME."),
            *offsets("Record offsets", MAX_LIMIT),
        ),
        Parameter(
            "--class",
            name="listed",
            metavar="CLASS",
            is_repeatable=True,
            help="List the ranges of this class. Repeatable.",
        ),
        REQUIRE_COMPLETE,
        *OUTPUT,
    ),
    function="sharelens.questions.accounting:account",
    rows={
        "": "sharelens.questions.accounting:LAYOUT",
        "with --class": "sharelens.questions.accounting:LISTED_LAYOUT",
    },
    rules=(
        INTERVAL,
        OFFSETS,
        OneOf("listed", "--class", "sharelens.measures.schemas:CLASSES", "class; classes: {words}"),
    ),
)

LIFE = Question(
    name="life",
    summary="Creations, resets and deletions of share partitions.",
    help="""The lives of share partitions: creations, resets, deletions, epochs, and offsets skipped or replayed by
    resets.

    Events: first_seen, created, recreated, reset, deleted, state_epoch_moved, leader_epoch_moved,
    start_offset_went_back. The state log does not distinguish the deletion of a group from that of a topic; the
    command infers it from __consumer_offsets.
    """,
    examples=(
        "sharelens life --lake ./lake --group orders-workers",
        "sharelens life --log-dir /var/kafka-copy --event reset --event deleted --output json",
    ),
    parameters=(
        *SOURCE,
        *KEYS,
        *CUT,
        *SPAN,
        Parameter(
            "--event",
            name="events",
            metavar="EVENT",
            is_repeatable=True,
            help="Only this event (reset, ...). Repeatable.",
        ),
        REQUIRE_COMPLETE,
        *OUTPUT,
    ),
    function="sharelens.questions.life:life",
    rows={"": "sharelens.questions.life:LAYOUT"},
    rules=(INTERVAL, OneOf("events", "--event", "sharelens.measures.schemas:EVENTS", "event; events: {words}")),
)

STATES_AND_RECORDS = (STATE, RECORDS, TRACE, MOMENTS, DIFF, LOCATE, ACCOUNT, LIFE)
