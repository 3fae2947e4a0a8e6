"""Questions about groups and what happened to their members and settings."""

from dataclasses import replace

from sharelens.question_table.question import Parameter, Question, Reads, Value, flag, parts
from sharelens.question_table.rules import INTERVAL, AtMostOne, Excludes
from sharelens.question_table.shared import (
    AS_OF,
    CLUSTER,
    END_OFFSETS,
    GROUP,
    LAKE,
    LOG_DIR,
    MAX_BYTES,
    OUTPUT,
    REQUIRE_COMPLETE,
    SOURCE,
    SPAN,
    STORAGE_OPTION,
)

GROUPS = Question(
    name="groups",
    summary="Consumer, share and streams groups: state, members, epochs, last change.",
    help="""Consumer, share and streams groups in the group coordinator's log: state, members, epochs, last change.

    --from and --to bound the time of a group's last change.
    """,
    examples=("sharelens groups --lake ./lake", "sharelens groups --log-dir /var/kafka-copy --output json"),
    parameters=(
        *SOURCE,
        Parameter(
            "--group",
            part_of=(Value(argument="names", make="sharelens.questions.groups.groups:group_ids"),),
            metavar="GROUP",
            is_repeatable=True,
            help="Only this group. Repeatable.",
        ),
        replace(AS_OF, help="The state after all records of the group up to and including TIME."),
        *SPAN,
        REQUIRE_COMPLETE,
        *OUTPUT,
    ),
    function="sharelens.questions.groups.groups:groups",
    rows={"": "sharelens.questions.groups.groups:LAYOUT"},
    rules=(INTERVAL,),
    reads=Reads.ANY_LOG,
)

DESCRIBE = Question(
    name="describe",
    summary="A consumer, share or streams group as Kafka's tool described it.",
    help="""A group at a moment, in the words of Kafka's tool for its kind (kafka-share-groups.sh --describe, …).

    The logs have no coordinator, so its column is left out. The lag of a share group is that of `sharelens lag`; the
    lag of a consumer or streams group counts from its committed offsets, also those of partitions that no member has.
    At an earlier moment lags are inferred from the timestamps of the topic's batches.
    """,
    examples=(
        "sharelens describe --log-dir /var/kafka-copy --group orders-workers",
        "sharelens describe --lake ./lake --group orders-workers --members --as-of 2026-11-21T05:10:00Z",
        "sharelens describe --log-dir /var/kafka-copy --group word-count --tasks",
    ),
    parameters=(
        *SOURCE,
        GROUP,
        replace(AS_OF, help="The group after all of its records with a log time up to TIME."),
        *parts(
            Value(argument="view", make="sharelens.questions.groups.describe:view_of"),
            flag("--offsets", "Start or committed offset and lag of each partition (default)."),
            flag("--members", "The members with their assignments."),
            flag("--tasks", "The tasks of a streams group with the members that have them."),
            flag("--state", "State, epochs and number of members."),
        ),
        END_OFFSETS,
        REQUIRE_COMPLETE,
        *OUTPUT,
    ),
    function="sharelens.questions.groups.describe:describe",
    rows={
        "": "sharelens.questions.groups.describe_share:OFFSET_LAYOUT",
        "at an earlier moment": "sharelens.questions.groups.describe_share:EARLIER_OFFSET_LAYOUT",
        "with --members": "sharelens.questions.groups.describe_share:MEMBER_LAYOUT",
        "with --state": "sharelens.questions.groups.describe_share:STATE_LAYOUT",
        "of a consumer group": "sharelens.questions.groups.describe_consumer:OFFSET_LAYOUT",
        "of a consumer group at an earlier moment": "sharelens.questions.groups.describe_consumer:EARLIER_LAYOUT",
        "of a consumer group with --members": "sharelens.questions.groups.describe_consumer:MEMBER_LAYOUT",
        "of a consumer group with --state": "sharelens.questions.groups.describe_consumer:STATE_LAYOUT",
        "of a streams group": "sharelens.questions.groups.describe_streams_offsets:LAYOUT",
        "of a streams group at an earlier moment": "sharelens.questions.groups.describe_streams_offsets:EARLIER_LAYOUT",
        "of a streams group with --members": "sharelens.questions.groups.describe_streams:MEMBER_LAYOUT",
        "of a streams group with --tasks": "sharelens.questions.groups.describe_streams:TASK_LAYOUT",
        "of a streams group with --state": "sharelens.questions.groups.describe_streams:STATE_LAYOUT",
    },
    rules=(
        AtMostOne(
            ("offsets", "members", "tasks", "state"),
            "--offsets, --members, --tasks and --state exclude each other; give one of them",
        ),
        Excludes(
            ("end_offsets",),
            ("members", "tasks", "state"),
            "--end-offsets is for the lag; leave it out with --members, --tasks and --state",
        ),
    ),
    reads=Reads.ANY_LOG,
)

REBALANCES = Question(
    name="rebalances",
    summary="Who joined a group, who was removed, what moved.",
    help="""Each group epoch of a group: who joined, who was removed, which partitions or tasks moved from whom to whom.

    A member that leaves and one that is fenced write the same records, so both are removed. Moves are those of the
    target assignment. Of consumer and streams groups also: what stays, how much a member has, the time until the
    group was stable, and how long partitions or active tasks had no owner.
    """,
    examples=(
        "sharelens rebalances --lake ./lake --group orders-workers --from -1h",
        "sharelens rebalances --log-dir /var/kafka-copy --group orders-workers --output json",
    ),
    parameters=(*SOURCE, GROUP, *SPAN, REQUIRE_COMPLETE, *OUTPUT),
    function="sharelens.questions.groups.rebalances:rebalances",
    rows={
        "": "sharelens.questions.groups.rebalances_share:LAYOUT",
        "of a consumer group": "sharelens.questions.groups.rebalances_consumer:LAYOUT",
        "of a streams group": "sharelens.questions.groups.rebalances_streams:LAYOUT",
    },
    rules=(INTERVAL,),
    reads=Reads.ANY_LOG,
)

CONFIGURATIONS = Question(
    name="configurations",
    summary="The settings of groups, topics and brokers over time.",
    help="""Lists the settings that the metadata log has, each value with the time in which it was in force.

    These are the dynamic settings; what brokers read from their files, and Kafka's defaults, are not in the log. Of
    settings that can be secret only length and digest are shown: equal values of one answer have equal digests. A lake
    has no digests.
    """,
    examples=(
        "sharelens configurations --log-dir /var/kafka-copy --group orders-workers",
        "sharelens configurations --lake ./lake --topic orders --as-of 2026-11-21T05:10:00Z",
    ),
    parameters=(
        *parts(
            Value(argument="source", make="sharelens.source.making:metadata_source"),
            LAKE,
            STORAGE_OPTION,
            replace(LOG_DIR, help="A log directory with the folder __cluster_metadata-0, or a copy. Repeatable."),
            CLUSTER,
            replace(MAX_BYTES, help="Largest metadata log to read."),
        ),
        *parts(
            Value(argument="chosen", make="sharelens.questions.configurations:resource_filter"),
            Parameter(
                "--group", name="groups", metavar="GROUP", is_repeatable=True, help="Only this group. Repeatable."
            ),
            Parameter(
                "--topic",
                name="topics",
                metavar="TOPIC",
                is_repeatable=True,
                help="Only this topic: NAME or ID, deleted too. Repeatable.",
            ),
            Parameter(
                "--broker",
                name="brokers",
                metavar="N",
                is_repeatable=True,
                help="Only this broker: its id, or `default` for all brokers. Repeatable.",
            ),
        ),
        replace(AS_OF, help="The settings in force at TIME."),
        REQUIRE_COMPLETE,
        *OUTPUT,
    ),
    function="sharelens.questions.configurations:configurations",
    rows={"": "sharelens.questions.configurations:LAYOUT"},
)

GROUPS_AND_SETTINGS = (GROUPS, DESCRIBE, REBALANCES, CONFIGURATIONS)
