"""Parameters that several commands take, in the groups and the order of their help pages."""

from dataclasses import replace

from sharelens.output import Form
from sharelens.parameters.filters import LAST_PARTITION
from sharelens.parameters.times import Rounding
from sharelens.question_table.kinds import Address, Choice, Duration, Flag, Names, Number, Size, Time
from sharelens.question_table.question import Parameter, Value, flag, parts
from sharelens.source.request import DEFAULT_MAX_BYTES

LARGEST_OFFSET = (1 << 63) - 1
MAX_LIMIT = (1 << 63) - 2
"""Largest --limit: one row more is read, and counted in 64 bits."""

_SOURCE = Value(argument="source", make="sharelens.source.making:source")
STORAGE_OPTION = Parameter(
    "--storage-option",
    metavar="NAME=VALUE",
    is_repeatable=True,
    is_for_surface=True,
    effect="sharelens.object_stores.options:set_options",
    help="For a lake or logs in a bucket: aws_region=…, aws_endpoint_url=… Repeatable.",
)
LAKE = Parameter("--lake", metavar="DIR", kind=Address(), help="The lake that `sharelens run` wrote.")


def lake(help_text: str, *, is_required: bool = False) -> tuple[Parameter, Parameter]:
    """--lake and --storage-option."""
    return replace(LAKE, help=help_text, is_required=is_required), STORAGE_OPTION


LOG_DIR = Parameter(
    "--log-dir",
    metavar="DIR",
    kind=Address(),
    is_repeatable=True,
    help="A broker's log directory, a copy, or a tar archive of it; a path or URI. Repeatable.",
)
BOOTSTRAP = Parameter("--bootstrap-server", metavar="HOST:PORT", help="A running cluster.")
COMMAND_CONFIG = Parameter(
    "--command-config",
    metavar="FILE",
    help="With --bootstrap-server, a file of Kafka's client properties: TLS with PEM files; SASL PLAIN, SCRAM and "
    "OAUTHBEARER.",
)
USER_TOPICS = Parameter(
    "--user-topics",
    kind=Choice(("none", "samples", "all")),
    help="With --bootstrap-server, what to read of user topics: nothing, their end offsets and the batches of "
    "first incomplete records, or all records.  [default: samples]",
)
CLUSTER = Parameter("--cluster-id", metavar="ID", help="The cluster; needed where the lake has several.")
UNCOMMITTED = flag(
    "--include-uncommitted", "Read records at or above the high watermark too (for the copy of a dead broker)."
)
DELETED = flag("--include-deleted", "Read *-delete and *-stray partition folders too.")
TOPIC_NAMES = Parameter(
    "--topic-names", metavar="FILE", help="A file with lines TOPIC-ID NAME, for topics without a folder."
)
SETTINGS = Parameter(
    "--settings",
    metavar="DIR",
    help="A folder with files of settings: group-configs.txt, broker.properties, topics.txt, end-offsets.txt, "
    "dead-letter-topics.txt.",
)
MAX_BYTES = Parameter(
    "--max-bytes", kind=Size(), default=DEFAULT_MAX_BYTES, shown_default="2G", help="Largest state log to read."
)
DLQ_TOPIC = Parameter(
    "--dlq-topic", metavar="NAME", is_repeatable=True, help="Search this topic for dead letters. Repeatable."
)
DLQ_PREFIX = Parameter(
    "--dlq-prefix", metavar="PREFIX", help="Search topics with this name prefix for dead letters, too.  [default: dlq.]"
)
GROUP_CONFIGS = Parameter(
    "--group-configs",
    metavar="FILE",
    help="Settings of groups, as printed by kafka-configs --describe --entity-type groups.",
)
BROKER_CONFIG = Parameter("--broker-config", metavar="FILE", help="The brokers' server.properties.")
SUPPRESSIONS = Parameter(
    "--suppressions",
    metavar="FILE",
    help="A YAML list of findings that are known, each with a reason and a last day  [default: conf, setting audit]",
)


SOURCE = parts(
    _SOURCE,
    LAKE,
    STORAGE_OPTION,
    LOG_DIR,
    BOOTSTRAP,
    COMMAND_CONFIG,
    USER_TOPICS,
    CLUSTER,
    UNCOMMITTED,
    DELETED,
    TOPIC_NAMES,
    SETTINGS,
    MAX_BYTES,
)
DEAD_LETTER_TOPICS = parts(_SOURCE, DLQ_TOPIC, DLQ_PREFIX)
SETTINGS_FILES = parts(_SOURCE, GROUP_CONFIGS, BROKER_CONFIG)

TOPIC = Parameter(
    "--topic",
    name="topics",
    metavar="TOPIC",
    is_repeatable=True,
    help="Only this topic: NAME, ID or NAME:0,1. Repeatable.",
)
PARTITION = Parameter(
    "--partition",
    name="partitions",
    kind=Number(least=0, largest=LAST_PARTITION),
    metavar="N",
    is_repeatable=True,
    help="Only this partition of the topic. Repeatable.",
)
KEYS = parts(
    Value(argument="key_filter", make="sharelens.parameters.filters:parse_key_filter"),
    Parameter("--group", name="groups", metavar="GROUP", is_repeatable=True, help="Only this share group. Repeatable."),
    TOPIC,
    PARTITION,
)
GROUP = Parameter("--group", name="name", metavar="GROUP", is_required=True, help="The group.")

_CUT = Value(argument="cut", make="sharelens.source.request:cut_choice")
AS_OF = Parameter(
    "--as-of",
    name="as_of_ms",
    kind=Time(),
    metavar="TIME",
    help="The state after all records with a log time up to and including TIME.",
)
CUT = parts(
    _CUT,
    AS_OF,
    Parameter(
        "--at-offset",
        metavar="P:O[,P:O]",
        is_repeatable=True,
        help="The state after records of state partition P up to and including log offset O (-1: none).",
    ),
)
NOW = parts(
    _CUT,
    Parameter(
        "--now",
        name="now_ms",
        kind=Time(),
        metavar="TIME",
        help="Until when the evidence was read: stalls that last go on until then.  [default: by the files' times]",
    ),
)


def interval(first_help: str, last_help: str) -> tuple[Parameter, Parameter]:
    """--from and --to, half-open."""
    kind = Time(Rounding.UP)
    return (
        Parameter("--from", name="from_ms", kind=kind, metavar="TIME", help=first_help),
        Parameter("--to", name="to_ms", kind=kind, metavar="TIME", help=last_help),
    )


def offsets(noun: str, largest: int) -> tuple[Parameter, Parameter]:
    """--from-offset and --to-offset, half-open."""
    kind = Number(least=0, largest=largest)
    return (
        Parameter("--from-offset", kind=kind, metavar="O", help=f"{noun} from O on."),
        Parameter("--to-offset", kind=kind, metavar="O", help=f"{noun} before O."),
    )


SPAN_VALUE = Value(argument="span", make="sharelens.tables.spans:span")
SPAN = parts(SPAN_VALUE, *interval("Log times from TIME on.", "Log times before TIME."))
MIN_DURATION = Parameter(
    "--min-duration",
    name="min_duration_ms",
    kind=Duration(bare_unit="s", least_ms=0),
    default="1m",
    shown_default="1m",
    metavar="DURATION",
    help="The shortest stall: 90s, 5m; a number: seconds.",
)
SHORTEST_STALL = replace(
    MIN_DURATION,
    default=None,
    shown_default="",
    help="The shortest stall: 90s, 5m; a number: seconds. Without it a finding takes three lock durations, 10 s at "
    "least, and three minutes where the lock duration is unknown; a table of stalls one minute.",
)
VERBOSE = flag(
    "--verbose",
    "In text, show all ranges of record offsets, not the first four (on a terminal: --wide or --vertical too).",
)
END_OFFSETS = Parameter(
    "--end-offsets",
    part_of=(
        Value(argument="end_offsets", make="sharelens.settings.end_offsets:optional_end_offsets", is_after_rules=True),
    ),
    metavar="FILE",
    help="End offsets of topics, as kafka-get-offsets prints them (topic:partition:N).",
)

REQUIRE_COMPLETE = Parameter(
    "--require-complete", kind=Flag(), is_for_surface=True, help="Exit with 1 when a row is not complete."
)
FAIL_ON = Parameter("--fail-on", kind=Flag(), is_for_surface=True, help="Exit with 3 when there is a finding.")
_SHOWN = Value(argument="shown", make="sharelens.output.answers:shown")
OUTPUT = tuple(
    replace(parameter, is_for_surface=True, part_of=(_SHOWN,))
    for parameter in (
        Parameter(
            "--output",
            short_option="-o",
            kind=Choice(tuple(form.value for form in Form)),
            default="text",
            shown_default="text",
            help="Format of the answer on stdout.",
        ),
        Parameter(
            "--limit",
            kind=Number(least=1, largest=MAX_LIMIT),
            metavar="N",
            help="Largest number of rows  [default: 1000 in text, else all]",
        ),
        Parameter(
            "--columns",
            kind=Names(),
            metavar="A,B,C",
            help="These columns alone, in this order: headings or JSON field names, in every format.",
        ),
        flag("--wide", "On a terminal, show all columns, also where they don't fit its width."),
        flag("--vertical", "In text, a line a column for each row (a terminal does so for one row)."),
    )
)
