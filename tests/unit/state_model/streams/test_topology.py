import pytest

from state_model.group_topics import TopicMetadata
from state_model.streams.topology import InvalidTopologyError, StatusCode, configure, required_topics
from state_model.streams.values import CopartitionGroup, Subtopology, TaskId, TopicInfo, Topology


def topics(**partitions):
    topics_by_name = {name: TopicMetadata(name, bytes(16), count) for name, count in partitions.items()}
    return topics_by_name.get


def info(name, partitions=0):
    return TopicInfo(name, partitions)


COUNTS = Topology(
    0,
    (
        Subtopology("0", ("text",), repartition_sink_topics=("r",)),
        Subtopology("1", repartition_source_topics=(info("r"),), state_changelog_topics=(info("c"),)),
    ),
)
JOIN = Topology(
    0, (Subtopology("0", ("left", "right"), (), (info("c"),), copartition_groups=(CopartitionGroup((0, 1)),)),)
)


def join_with_repartition(partitions=0):
    repartition = (info("r", partitions),)
    group = CopartitionGroup((0,), (), (0,))
    subtopology = Subtopology("1", ("left",), repartition_source_topics=repartition, copartition_groups=(group,))
    return Topology(0, (Subtopology("0", ("wide",), repartition_sink_topics=("r",)), subtopology))


def test_repartition_and_changelog_topics_get_the_count_of_the_source():
    configured = configure(COUNTS, topics(text=4))
    assert configured.problem == (StatusCode.MISSING_INTERNAL_TOPICS, "Internal topics are missing: c, r")
    assert configured.missing_topics == (info("c", 4), info("r", 4))
    assert not configured.is_ready
    assert configured.tasks == []


def test_a_topology_with_all_its_topics_is_ready():
    configured = configure(COUNTS, topics(text=2, r=2, c=2))
    assert configured.is_ready
    assert configured.tasks == [TaskId("0", 0), TaskId("0", 1), TaskId("1", 0), TaskId("1", 1)]
    assert configure(Topology(0), topics()).is_ready


def test_missing_source_topics_are_counted_beyond_the_third():
    topology = Topology(0, (Subtopology("0", ("d", "b", "c", "a")),))
    detail = "Source topics a, b, c and 1 additional topics are missing."
    assert configure(topology, topics()).problem == (StatusCode.MISSING_SOURCE_TOPICS, detail)


@pytest.mark.parametrize(
    ("topology", "existing", "detail"),
    [
        (
            JOIN,
            topics(left=4, right=3),
            "Following topics do not have the same number of partitions: [{left=4, right=3}]",
        ),
        (COUNTS, topics(text=4, c=2), "Existing topic c has different number of partitions: expected 4, found 2"),
        (
            join_with_repartition(5),
            topics(left=4, wide=6),
            (
                "Number of partitions [5] of repartition topic [r] doesn't match number of partitions [4] of the "
                "source topic."
            ),
        ),
    ],
)
def test_partition_counts_that_do_not_fit_are_a_status(topology, existing, detail):
    configured = configure(topology, existing)
    assert configured.problem == (StatusCode.INCORRECTLY_PARTITIONED_TOPICS, detail)
    assert configured.subtopologies is None


def test_a_repartition_topic_takes_the_count_of_the_topic_that_it_is_joined_with():
    configured = configure(join_with_repartition(), topics(left=4, wide=6))
    assert configured.missing_topics == (info("r", 4),)


def loop():
    return Topology(
        0,
        (
            Subtopology("0", repartition_sink_topics=("a",), repartition_source_topics=(info("b"),)),
            Subtopology("1", repartition_sink_topics=("b",), repartition_source_topics=(info("a"),)),
        ),
    )


def copartition_of(index):
    return Topology(0, (Subtopology("0", ("t",), copartition_groups=(CopartitionGroup((index,)),)),))


@pytest.mark.parametrize(
    ("topology", "text"),
    [
        (loop(), "There may be loops"),
        (Topology(0, (Subtopology("0", repartition_source_topics=(info("r"),)),)), "never used as a sink"),
        (Topology(0, (Subtopology("0"),)), "No source topics found for subtopology 0"),
        (copartition_of(1), "names topic 1 of 1"),
        (copartition_of(-1), "names topic -1 of 1"),
    ],
)
def test_a_topology_that_no_topics_can_make_valid_is_refused(topology, text):
    with pytest.raises(InvalidTopologyError, match=text):
        configure(topology, topics(t=1))


def test_required_topics_are_those_that_tasks_read_and_their_changelogs():
    assert required_topics(COUNTS) == {"text", "r", "c"}
