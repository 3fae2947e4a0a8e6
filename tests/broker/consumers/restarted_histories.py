"""Histories of groups over a restart of their broker: what a coordinator knows from its log alone.

`RESTARTED` has what happens before the restart and after it, by name.
"""

from collections.abc import Callable

from tests.broker.consumers.classic_member import ClassicMember
from tests.broker.consumers.consumer_histories import History, joined
from tests.broker.consumers.consumer_script import Script

RESTARTED: dict[str, Callable[[Script], History]] = {}
"""Each plays its first part, and returns the one after the restart."""


def restarted(play: Callable[[Script], History]) -> Callable[[Script], History]:
    """Adds a history under its name."""
    RESTARTED[play.__name__.replace("_", "-")] = play
    return play


@restarted
def members_go_on(script: Script) -> History:
    topic = joined(script, "a", "b")

    def after(script: Script) -> None:
        script.describe()
        script.beat("a")
        script.beat("b", owned=True)
        script.send("b", 1)
        script.join("c", topic)
        script.settle("a", "b", "c")

    return after


@restarted
def revocation_goes_on(script: Script) -> History:
    topic = joined(script, "a")
    owned = script.owned("a")
    script.join("b", topic)
    script.beat("a")

    def after(script: Script) -> None:
        script.describe()
        script.beat("b", owned=True)
        script.beat("a", topic_partitions=owned)
        script.beat("a")
        script.settle("a", "b")

    return after


@restarted
def static_member_comes_back(script: Script) -> History:
    topic = script.topic("t", 4)
    script.join("a", topic, instance_id="i")
    script.join("b", topic, instance_id="j")
    script.settle("a", "b")
    script.send("a", -2, instance_id="i")

    def after(script: Script) -> None:
        script.describe()
        script.join("c", topic, instance_id="j")
        script.join("c", topic, instance_id="i")
        script.settle("b", "c")

    return after


@restarted
def expression_is_kept(script: Script) -> History:
    script.topic("t", 2)
    script.join("a", subscribed_topic_names=None, subscribed_topic_regex=f"{script.group}-.")
    script.beat_until("a", lambda _: script.partitions("a") == [0, 1])
    script.settle("a", rounds=1)

    def after(script: Script) -> None:
        script.describe()
        script.topic("u", 1)
        # The first heartbeat lets the broker resolve it again.
        script.beat_until("a", lambda _: script.partitions("a") == [0, 0, 1])
        script.settle("a", rounds=1)

    return after


@restarted
def topic_grows_after_a_restart(script: Script) -> History:
    joined(script, "a", partitions=2)

    def after(script: Script) -> None:
        script.topic("t", 3)
        epoch = script.epoch("a")
        script.beat_until("a", lambda answer: answer.member_epoch > epoch)
        script.settle("a")

    return after


@restarted
def offsets_and_epochs_are_kept(script: Script) -> History:
    topic = joined(script, "a")
    epoch = script.epoch("a")
    script.join("b", topic)
    script.settle("a", "b")
    script.commit("own", "a", script.epoch("a"), topic, 0)

    def after(script: Script) -> None:
        numbers = script.partitions("a")[0], script.partitions("b")[0]
        for number in numbers:
            script.commit(f"older {number}", "a", epoch, topic, number)
            script.commit(f"own {number}", "a", script.epoch("a"), topic, number)
        script.fetch("all", "a", script.epoch("a"))
        script.send("a", -1)
        script.send("b", -1)
        script.list_entry()
        script.delete_group()

    return after


@restarted
def mixed_group_goes_on(script: Script) -> History:
    topic = joined(script, "a")
    member = ClassicMember(script, "c", topic)
    member.join()
    member.sync()
    member.follow("a")

    def after(script: Script) -> None:
        script.describe()
        member.follow("a")
        script.send("a", -1)
        script.list_entry()
        member.beat()
        member.join()
        member.sync({topic: range(6)})

    return after
