"""Histories of consumer groups: scripts of heartbeats and of other requests, each about one rule.

`HISTORIES` has them by name; each plays in a group of its own.
"""

from collections.abc import Callable

from tests.broker.consumers.consumer_script import Script

History = Callable[[Script], None]
HISTORIES: dict[str, History] = {}
WITH_TIES: set[str] = set()
"""Histories in which the ids of topics decide who gets which partition."""
SESSION_S = 1.5
"""Longer than the shortest session that a group may have."""


def history(play: History) -> History:
    """Adds a history under its name."""
    HISTORIES[play.__name__.replace("_", "-")] = play
    return play


def history_with_ties(play: History) -> History:
    """Adds a history, whose assignments are compared by their size."""
    WITH_TIES.add(play.__name__.replace("_", "-"))
    return history(play)


def joined(script: Script, *members: str, partitions: int = 6) -> str:
    """A topic that members have shared among themselves; its name."""
    topic = script.topic("t", partitions)
    for member in members:
        script.join(member, topic)
    script.settle(*members)
    return topic


# Joining, leaving and epochs.


@history
def join_and_leave(script: Script) -> None:
    topic = joined(script, "a")
    script.beat("a")
    script.beat("a", owned=True)
    script.send("a", -1)
    script.send("a", -1)
    script.join("a", topic)


@history
def null_means_unchanged(script: Script) -> None:
    topic = joined(script, "a")
    script.beat("a")
    script.beat("a", subscribed_topic_names=[topic])
    script.beat("a", rebalance_timeout=30_000)
    script.beat("a", rack_id="r")
    script.beat("a", server_assignor="range")
    script.beat("a")
    script.beat("a", subscribed_topic_names=[])
    script.beat("a")


@history
def members_share(script: Script) -> None:
    joined(script, "a", "b")
    script.describe()
    script.list_entry()


@history
def third_member_and_departure(script: Script) -> None:
    joined(script, "a", "b", "c")
    script.send("b", -1)
    script.settle("a", "c")
    script.send("c", -1)
    script.settle("a")


@history
def join_again(script: Script) -> None:
    topic = joined(script, "a", "b")
    script.join("a", topic)
    script.beat("a", owned=True)
    script.settle("a", "b")
    script.join("a")
    script.settle("a", "b")


@history
def previous_epoch_with_owned_partitions(script: Script) -> None:
    topic = joined(script, "a")
    script.join("b", topic)
    epoch, owned = script.epoch("a"), script.owned("a")
    script.beat("a", owned=True)
    script.beat("a", owned=True)
    script.beat("a", owned=True)
    script.send("a", epoch, topic_partitions=owned)
    script.send("a", epoch, topic_partitions=script.owned("a"))
    script.beat("a", owned=True)


@history
def previous_epoch_with_fewer_partitions(script: Script) -> None:
    topic = joined(script, "a", "b")
    script.send("b", -1)
    epoch, (owned, *_) = script.epoch("a"), script.owned("a")
    script.beat("a", owned=True)
    script.send("a", epoch, topic_partitions=[owned])
    script.send("a", epoch, topic_partitions=[owned | {"partitions": owned["partitions"][:1]}])
    script.send("a", epoch, topic_partitions=[])
    script.send("a", epoch)
    script.send("a", epoch, subscribed_topic_names=[topic], topic_partitions=[])


@history
def wrong_epochs(script: Script) -> None:
    joined(script, "a")
    for epoch in (1, 99, 2**31 - 1):
        script.send("a", epoch)
        script.send("a", epoch, topic_partitions=script.owned("a"))
    script.beat("a")


@history
def unknown_members(script: Script) -> None:
    script.send("nobody", 1)
    script.send("nobody", -1)
    script.send("nobody", -2, instance_id="i")
    joined(script, "a")
    script.send("nobody", 1)
    script.send("nobody", -1)
    script.send("nobody", -2, instance_id="i")
    script.send("a", 1, instance_id="i")


@history
def malformed(script: Script) -> None:
    topic = script.topic("t", 2)
    script.join("a", topic, rebalance_timeout=-1)
    script.join("a", topic, topic_partitions=None)
    script.join("a", topic, topic_partitions=[{"topic_id": script.topic_id(topic), "partitions": [0]}])
    script.join("a", subscribed_topic_names=None)
    script.join("a", topic, instance_id="")
    script.join("a", topic, rack_id="")
    script.join("", topic)
    script.send("", 1)
    script.send("", -1)
    script.send("a", -2)
    script.send("a", -3)
    script.describe()
    script.join("a", topic)
    script.beat("a", instance_id="")
    script.beat("a", rack_id="")
    script.send("", script.epoch("a"))
    script.beat("a", topic_partitions=[{"topic_id": script.topic_id("none"), "partitions": [0]}])
    script.beat("a", topic_partitions=[{"topic_id": script.topic_id(topic), "partitions": [7]}])


@history
def malformed_group(script: Script) -> None:
    script.send("a", 0, group_id="", rebalance_timeout=1_000, subscribed_topic_names=["t"], topic_partitions=[])
    script.send("a", 1, group_id="")


@history
def unsupported_assignor(script: Script) -> None:
    topic = script.topic("t", 2)
    script.join("a", topic, server_assignor="nonsense")
    script.join("a", topic, server_assignor="")
    script.join("a", topic, server_assignor="range")
    script.beat("a", server_assignor="nonsense")
    script.beat("a", server_assignor="uniform")
    script.describe()


@history
def full_group(script: Script) -> None:
    topic = joined(script, "a", "b", "c")
    script.join("d", topic)
    script.join("d", topic, instance_id="i")
    script.join("a", topic)
    script.send("c", -1)
    script.join("d", topic)


@history
def version_0_makes_ids(script: Script) -> None:
    topic = script.topic("t", 4)
    joining = {"subscribed_topic_names": [topic], "rebalance_timeout": 60_000, "topic_partitions": []}
    script.send("a", 0, version=0, member_id="", **joining)
    script.beat("a", version=0)
    script.beat("a", version=1, owned=True)
    script.send("b", 0, version=0, **joining)
    script.settle("a", "b")
    script.send("c", 0, version=1, member_id="", **joining)
    script.send("c", 5, version=0, member_id="")
    script.send("c", -1, version=0, member_id="")
    script.send("a", -1, version=0)


@history
def no_subscription(script: Script) -> None:
    topic = script.topic("t", 3)
    script.join("a")
    script.beat("a", owned=True)
    script.beat("a", subscribed_topic_names=[topic])
    script.settle("a")
    script.describe()


# Static members.


@history
def static_member_away(script: Script) -> None:
    topic = script.topic("t", 4)
    script.join("a", topic, instance_id="i")
    script.join("b", topic, instance_id="j")
    script.settle("a", "b")
    script.send("a", -2, instance_id="i")
    script.describe()
    script.settle("b", rounds=2)
    script.join("a", topic, instance_id="i")
    script.settle("a", "b")


@history
def static_member_replaced(script: Script) -> None:
    topic = script.topic("t", 4)
    script.join("a", topic, instance_id="i")
    script.settle("a")
    script.send("a", -2, instance_id="i")
    script.join("b", topic, instance_id="i")
    script.beat("b", owned=True)
    script.beat("a")
    script.send("b", -2, instance_id="i")
    script.join("c", topic, instance_id="i", server_assignor="range")
    script.settle("c")
    script.send("c", -2, instance_id="i")
    script.join("d", topic, script.topic("u", 1), instance_id="i")
    script.beat("d")
    script.describe()


@history
def static_id_in_use(script: Script) -> None:
    topic = script.topic("t", 4)
    script.join("a", topic, instance_id="i")
    script.join("b", topic, instance_id="i")
    script.send("b", 1, instance_id="i")
    script.send("b", -1, instance_id="i")
    script.send("b", -2, instance_id="i")
    script.send("a", -2, instance_id="j")
    script.send("a", script.epoch("a"), instance_id="i")
    script.send("a", script.epoch("a"), instance_id="j")
    script.send("a", -1, instance_id="i")
    script.describe()


@history
def static_member_leaves_for_good(script: Script) -> None:
    topic = script.topic("t", 4)
    script.join("a", topic, instance_id="i")
    script.join("b", topic)
    script.settle("a", "b")
    script.send("a", -1, instance_id="i")
    script.settle("b")
    script.join("c", topic, instance_id="i")
    script.settle("b", "c")


@history
def static_member_joins_again(script: Script) -> None:
    topic = script.topic("t", 4)
    script.join("a", topic, instance_id="i")
    script.settle("a")
    script.join("a", topic, instance_id="i")
    script.settle("a")
    script.send("a", -2, instance_id="i")
    script.beat("a", instance_id="i")
    script.send("a", -2, instance_id="i")
    script.send("a", -1, instance_id="i")


@history
def static_member_removed_by_admin(script: Script) -> None:
    topic = script.topic("t", 4)
    script.join("a", topic, instance_id="i")
    script.join("b", topic)
    script.settle("a", "b")
    script.leave_by_admin("unknown instance", group_instance_id="x")
    script.leave_by_admin("instance of another member", member_id="b", group_instance_id="i")
    script.leave_by_admin("instance", group_instance_id="i")
    script.leave_by_admin("unknown member", member_id="x")
    script.leave_by_admin("member of the consumer protocol", member_id="b")
    script.settle("b")
    script.describe()


# Reconciliation.


@history
def partitions_move_when_they_are_revoked(script: Script) -> None:
    topic = joined(script, "a")
    script.join("b", topic)
    script.beat("b", owned=True)
    script.beat("a")
    script.beat("b", owned=True)
    owned = script.owned("a")
    script.beat("a", topic_partitions=owned)
    script.describe("while a revokes")
    script.beat("b", owned=True)
    script.settle("a", "b")


@history
def partitions_reported_in_part(script: Script) -> None:
    topic = joined(script, "a")
    topic_id = script.topic_id(topic)
    script.join("b", topic)
    for numbers in ([0, 1, 2, 3, 4, 5], [0, 1, 2, 3], [0], []):
        script.beat("a", topic_partitions=[{"topic_id": topic_id, "partitions": numbers}])
        script.beat("b", owned=True)
    script.beat("a", topic_partitions=[])
    script.settle("a", "b")


@history
def target_changes_before_it_is_reached(script: Script) -> None:
    topic = joined(script, "a")
    script.join("b", topic)
    script.beat("a")
    script.join("c", topic)
    script.beat("b", owned=True)
    script.beat("a")
    script.beat("c", owned=True)
    script.settle("a", "b", "c")


@history
def revocation_ends_by_a_departure(script: Script) -> None:
    topic = joined(script, "a")
    script.join("b", topic)
    script.beat("a")
    script.send("b", -1)
    script.beat("a")
    script.settle("a")


@history
def owner_leaves_while_another_waits(script: Script) -> None:
    topic = joined(script, "a")
    script.join("b", topic)
    script.beat("b", owned=True)
    script.send("a", -1)
    script.settle("b")


@history
def range_assigns(script: Script) -> None:
    topic = script.topic("t", 5)
    for member in "abc":
        script.join(member, topic, server_assignor="range")
    script.settle("a", "b", "c")
    script.describe()
    script.send("a", -1)
    script.settle("b", "c")


@history
def assignors_are_elected(script: Script) -> None:
    topic = script.topic("t", 5)
    script.join("a", topic, server_assignor="range")
    script.join("b", topic, server_assignor="range")
    script.join("c", topic, server_assignor="uniform")
    script.settle("a", "b", "c")
    script.describe()
    script.beat("b", server_assignor="uniform")
    script.settle("a", "b", "c")
    script.describe()


@history_with_ties
def several_topics(script: Script) -> None:
    topics = [script.topic("t", 3), script.topic("u", 5)]
    script.join("a", *topics)
    script.join("b", *topics)
    script.settle("a", "b")


@history
def different_subscriptions(script: Script) -> None:
    first, second = script.topic("t", 3), script.topic("u", 2)
    script.join("a", first)
    script.join("b", second)
    script.settle("a", "b")
    script.beat("a", subscribed_topic_names=[second])
    script.settle("a", "b")
    script.beat("b", subscribed_topic_names=[first])
    script.settle("a", "b")
    script.describe()


@history
def subscription_changes_before_revocation(script: Script) -> None:
    first, second = script.topic("t", 3), script.topic("u", 2)
    script.join("a", first)
    script.settle("a")
    script.beat("a", subscribed_topic_names=[second])
    script.beat("a")
    script.beat("a", subscribed_topic_names=[first])
    script.settle("a")


@history
def targets_wait_for_the_interval(script: Script) -> None:
    script.configure(assignment_interval_ms=5_000)
    topic = joined(script, "a")
    script.wait(5.5)
    script.join("b", topic)
    script.beat("a")
    script.join("c", topic)
    script.beat("a")
    script.describe("within the interval")
    script.wait(5.5)
    script.settle("a", "b", "c")


# Topics.


@history
def topic_created_later(script: Script) -> None:
    topic = script.topic("t", 2)
    script.join("a", topic, f"{script.group}-late")
    script.settle("a")
    script.topic("late", 1)
    epoch = script.epoch("a")
    script.beat_until("a", lambda answer: answer.member_epoch > epoch)
    script.settle("a")
    script.describe()


@history
def unknown_topic_alone(script: Script) -> None:
    script.join("a", f"{script.group}-late")
    script.beat("a", owned=True)
    script.topic("late", 3)
    epoch = script.epoch("a")
    script.beat_until("a", lambda answer: answer.member_epoch > epoch)
    script.settle("a")


@history
def topic_grows(script: Script) -> None:
    joined(script, "a", "b", partitions=2)
    script.topic("t", 4)
    epoch = script.epoch("a")
    script.beat_until("a", lambda answer: answer.member_epoch > epoch)
    script.settle("b", "a")


@history
def topic_deleted(script: Script) -> None:
    first, second = script.topic("t", 2), script.topic("u", 1)
    script.join("a", first, second)
    script.settle("a")
    script.delete_topic(second)
    epoch = script.epoch("a")
    script.beat_until("a", lambda answer: answer.member_epoch > epoch)
    script.settle("a")
    script.describe()


# Expressions.


@history
def expression(script: Script) -> None:
    script.topic("t", 2)
    script.topic("u", 2)
    script.join("a", subscribed_topic_names=None, subscribed_topic_regex=f"{script.group}-(t|x)")
    script.beat_until("a", lambda _: script.partitions("a") == [0, 1])
    script.settle("a", rounds=1)
    script.describe()
    script.beat("a", subscribed_topic_regex=f"{script.group}-(t|x)")
    script.beat("a", subscribed_topic_regex="")
    script.settle("a")


@history
def expressions_that_do_not_compile(script: Script) -> None:
    topic = script.topic("t", 2)
    for regex in ("(", "[", "a{1001}", "(?=x)", r"\1", "*"):
        script.join("a", subscribed_topic_names=None, subscribed_topic_regex=regex)
    script.join("a", topic)
    script.beat("a", subscribed_topic_regex="(")
    script.beat("a")


@history
def expression_without_a_match(script: Script) -> None:
    script.topic("t", 2)
    script.join("a", subscribed_topic_names=None, subscribed_topic_regex=f"{script.group}-nothing")
    script.join("b", subscribed_topic_names=None, subscribed_topic_regex=f"{script.group}-t")
    # An expression is resolved ten seconds after the one before at the earliest.
    script.beat_until("b", lambda _: script.partitions("b") == [0, 1])
    script.settle("a", "b", rounds=2)
    script.describe()


@history
def empty_expression(script: Script) -> None:
    script.join("a", subscribed_topic_names=None, subscribed_topic_regex="")
    script.beat("a", owned=True)
    script.describe()


@history
def expression_and_names(script: Script) -> None:
    first = script.topic("t", 2)
    script.topic("u", 1)
    script.join("a", first, subscribed_topic_regex=f"{script.group}-u")
    script.beat_until("a", lambda _: script.partitions("a") == [0, 0, 1])
    script.settle("a", rounds=1)
    script.beat("a", subscribed_topic_names=[])
    script.settle("a")


@history
def expression_ends_with_its_last_member(script: Script) -> None:
    script.topic("t", 2)
    script.join("a", subscribed_topic_names=None, subscribed_topic_regex=f"{script.group}-.")
    script.beat_until("a", lambda _: script.partitions("a") == [0, 1])
    script.settle("a", rounds=1)
    script.send("a", -1)
    script.describe()


# Timers.


def shorten_sessions(script: Script) -> None:
    """Give the group the shortest session, from the next heartbeat on."""
    script.configure(session_timeout_ms=1_000)
    script.topic("barrier", 1)  # the coordinator has the configuration when it has a later topic


@history
def silent_member_is_fenced(script: Script) -> None:
    topic = joined(script, "a")
    shorten_sessions(script)
    script.beat("a", owned=True)
    script.wait(SESSION_S)
    script.beat("a", owned=True)
    script.describe()
    script.join("a", topic)


@history
def silent_static_member_is_fenced(script: Script) -> None:
    topic = script.topic("t", 2)
    script.join("a", topic, instance_id="i")
    shorten_sessions(script)
    script.send("a", -2, instance_id="i")
    script.wait(SESSION_S)
    script.describe()
    script.join("b", topic, instance_id="i")


@history
def member_that_keeps_partitions_is_fenced(script: Script) -> None:
    topic = script.topic("t", 4)
    script.join("a", topic, rebalance_timeout=500)
    script.settle("a")
    script.join("b", topic)
    script.beat("a", owned=True)
    script.wait(1)
    script.beat("a", owned=True)
    script.settle("b")
    script.join("a", topic)


@history
def member_that_revokes_in_time_stays(script: Script) -> None:
    topic = script.topic("t", 4)
    script.join("a", topic, rebalance_timeout=5_000)
    script.settle("a")
    script.join("b", topic)
    script.beat("a")
    script.beat("a", owned=True)
    script.wait(5.5)
    script.settle("a", "b")
