"""Scripts of heartbeats and of other requests to a streams group; the topics exist on each broker."""

import time
from typing import Any

from tests.broker.streams.streams_script import NO_TASKS, Script, internal, topology


def changelog(name: str, **fields: Any) -> dict[str, Any]:
    """The field of a subtopology with one changelog."""
    return {"state_changelog_topics": [internal(name, **fields)]}


COUNTING = topology({"source_topics": ["in"]}, {"source_topics": ["in"], **changelog("log")})
FIXED = [internal("fixed", 4), internal("other", 5)]
TOPOLOGIES = {
    "empty": topology(),
    "id twice": topology({"source_topics": ["in"]}, {"subtopology_id": "0", "source_topics": ["in"]}),
    "negative epoch": topology({"source_topics": ["in"]}, epoch=-1),
    "changelog with a count": topology({"source_topics": ["in"], **changelog("log", partitions=3)}),
    "topics of kafka": topology({"source_topics": ["__consumer_offsets", "__share_group_state"]}),
    "illegal topic": topology({"source_topics": ["a b"]}),
    "pattern": topology({"source_topics": ["in"], "source_topic_regex": ["a.*"]}),
    "missing sources": topology({"source_topics": ["in", "m-e", "m-a", "m-c", "m-b", "m-d"]}),
    "loop": topology(
        {"source_topics": ["in"]},
        {"repartition_source_topics": [internal("r1")], "repartition_sink_topics": ["r2"]},
        {"repartition_source_topics": [internal("r2")], "repartition_sink_topics": ["r1"]},
    ),
    "source without a sink": topology({"source_topics": ["in"], "repartition_source_topics": [internal("r3")]}),
    "no source": topology(changelog("log")),
    "nothing inside": topology({}),
    "other counts": topology({"source_topics": ["in", "two"], "copartition_groups": [{"source_topics": [0, 1]}]}),
    "copartition of none": topology({"source_topics": ["in"], "copartition_groups": [{"source_topics": [0, 3]}]}),
    "copartition below none": topology({"source_topics": ["in"], "copartition_groups": [{"source_topics": [-1]}]}),
    "fixed counts": topology(
        {"repartition_source_topics": FIXED, "copartition_groups": [{"repartition_source_topics": [0, 1]}]},
        {"source_topics": ["two"], "repartition_sink_topics": ["fixed", "other"]},
    ),
    "source twice": topology({"source_topics": ["in", "in"]}),
    "existing changelog": topology({"source_topics": ["two"], **changelog("log")}),
    "existing repartition": topology(
        {"source_topics": ["two"], "repartition_sink_topics": ["log"]},
        {"repartition_source_topics": [internal("log", 3)]},
    ),
    "sink that is read": topology(
        {"source_topics": ["two"], "repartition_sink_topics": ["in"]}, {"source_topics": ["in"]}
    ),
    "shared changelog": topology(
        {"source_topics": ["in"], **changelog("log")}, {"source_topics": ["two"], **changelog("log")}
    ),
    "too large": topology(
        *({"source_topics": ["in"], **changelog(f"c{number}", text="v" * 4_000)} for number in range(400))
    ),
}


def live(script: Script) -> None:
    """Members join, settle, leave, join again and are fenced by their epochs."""
    script.join("a", COUNTING)
    script.beat("a", owned=True)
    script.join("b", COUNTING)
    script.beat("a")
    script.settle("a", "b")
    script.join("c", COUNTING, user_endpoint={"host": "h", "port": 1})
    script.settle("a", "b", "c")
    script.send("b", -1)
    script.settle("a", "c")
    script.send("b", 3)
    script.send("b", -1)
    script.join("b", COUNTING)
    script.settle("a", "b", "c")
    script.join("b", COUNTING)
    script.settle("a", "b", "c")
    script.beat("a", rack_id="r")
    script.beat("a", shutdown_application=True)
    script.beat("b")
    for epoch in (99, 1, -2, -3):
        script.send("a", epoch)
    script.send("a", 1, **NO_TASKS)
    for member in "abc":
        script.send(member, -1)
    script.send("a", -1)
    script.join("a", COUNTING)


def annoy(script: Script) -> None:
    """Requests that no group may accept."""
    script.send("nobody", 7)
    script.send("nobody", -1)
    script.join("a", COUNTING)
    script.send("nobody", 7)
    for tasks in ([("9", 0)], [("0", 6)], [("0", -1)], [("0", 1), ("0", 1)]):
        script.beat("a", **NO_TASKS | {"active_tasks": [{"subtopology_id": i, "partitions": [p]} for i, p in tasks]})
    script.beat("a", active_tasks=[])
    for refused in ({"instance_id": "i"}, {"rack_id": ""}, {"task_offsets": []}, {"topology": COUNTING}):
        script.beat("a", **refused)
    script.beat("a", **NO_TASKS | {"warmup_tasks": [{"subtopology_id": "0", "partitions": [1]}]})
    script.join("a", topology({"source_topics": ["in"]}))
    script.join("a", COUNTING | {"epoch": 1})
    script.join("a", COUNTING, rebalance_timeout=-1)
    script.join("a", COUNTING, active_tasks=None)
    script.join("", COUNTING)
    script.join("x" * 30_000, COUNTING)
    script.join("large", COUNTING, client_tags=[{"key": f"k{number}", "value": "v" * 9_000} for number in range(200)])
    script.join("sound", COUNTING, client_tags=None)


def be_silent(script: Script) -> None:
    """A member that is silent for longer than its session."""
    script.join("a", COUNTING)
    time.sleep(1.5)
    script.beat("a", owned=True)
    script.join("b", COUNTING)
    script.join("a", COUNTING)
    script.send("a", -1)
    script.send("b", -1)


def keep_tasks(script: Script) -> None:
    """A member that does not revoke its tasks in time."""
    script.join("a", COUNTING, rebalance_timeout=500)
    script.join("b", COUNTING)
    script.beat("a")
    time.sleep(1)
    script.beat("a", owned=True)
    script.beat("b")
    script.join("a", COUNTING)


def administrate(script: Script) -> None:
    """Offsets of members and of others; the end of the group."""
    script.join("a", COUNTING)
    script.join("b", COUNTING)
    script.settle("a", "b")
    epoch, (own_partition, other) = script.epoch("a"), (script.owned(member)[0][1] for member in "ab")
    for label, member, sent, topic, partition in (
        ("own", "a", epoch, "in", own_partition), ("older", "a", epoch - 1, "in", own_partition),
        ("newer", "a", epoch + 1, "in", own_partition),
        ("older, of another", "a", epoch - 1, "in", other), ("of another", "a", epoch, "in", other),
        ("older, not read", "a", epoch - 1, "two", 0), ("not read", "a", epoch, "two", 0),
        ("unknown member", "c", epoch, "in", 0), ("no member", "", -1, "in", 0), ("missing topic", "a", epoch, "no", 0),
    ):  # fmt: skip
        script.commit(label, member, sent, topic, partition)
    for label, member, sent in (("tool", None, -1), ("own", "a", epoch), ("old", "a", epoch - 1), ("no", "c", 1)):
        script.fetch(f"fetch {label}", member, sent)
    for topic in ("in", "two", "no"):
        partitions = [{"partition_index": 0}]
        script.other(
            f"delete {topic}", 47, 0, group_id=script.group, topics=[{"name": topic, "partitions": partitions}]
        )
    script.other("delete a group with members", 42, 2, groups_names=[script.group])
    for member in "ab":
        script.send(member, -1)
    script.commit("nobody left", "", -1, "in", 1)
    for _ in range(2):
        script.other("delete", 42, 2, groups_names=[script.group])
        script.other("describe", 89, 0, group_ids=[script.group])
