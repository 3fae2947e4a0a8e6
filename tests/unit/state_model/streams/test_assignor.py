from hypothesis import given
from hypothesis import strategies as st

from state_model.streams.assignor import AssignedMember, assign
from state_model.streams.values import NO_TASKS_BY_TYPE, TaskId, TasksByType


def tasks(*texts):
    return frozenset(TaskId(name, int(number)) for name, number in (text.split("_") for text in texts))


def first(processes, **counts):
    """An assignment of new members; the first letter of a member is its process."""
    members = {member: AssignedMember(member[0], NO_TASKS_BY_TYPE) for member in processes}
    return assign(members, counts, stateful=(), standby_replicas=0)


def again(before, members, counts, *, stateful=(), standby_replicas=0):
    joined = {member: AssignedMember(member[0], before.get(member, NO_TASKS_BY_TYPE)) for member in members}
    return assign(joined, counts, stateful=stateful, standby_replicas=standby_replicas)


def sizes(targets):
    return sorted(len(target.active) for target in targets.values())


def test_equal_processes_get_tasks_within_one_of_each_other():
    assert sizes(first(("a1", "b1", "c1"), s0=4, s1=4)) == [2, 3, 3]


def test_a_process_with_two_members_gets_twice_the_tasks():
    targets = first(("a1", "a2", "b1"), s0=6)
    assert {member: len(target.active) for member, target in targets.items()} == {"a1": 2, "a2": 2, "b1": 2}


def test_a_member_that_joins_takes_tasks_and_the_others_keep_the_rest():
    before = first(("a1", "b1"), s0=6)
    after = again(before, ("a1", "b1", "c1"), {"s0": 6})
    assert sizes(after) == [2, 2, 2]
    assert all(after[member].active <= before[member].active for member in ("a1", "b1"))


def test_the_standby_of_a_lost_task_becomes_active():
    before = {
        "a1": TasksByType(tasks("s_0", "s_1"), tasks()),
        "b1": TasksByType(tasks("s_2"), tasks("s_0")),
        "c1": TasksByType(tasks("s_3"), tasks("s_1")),
    }
    after = again(before, ("b1", "c1"), {"s": 4}, stateful=("s",), standby_replicas=1)
    assert (after["b1"].active, after["c1"].active) == (tasks("s_0", "s_2"), tasks("s_1", "s_3"))
    assert (after["b1"].standby, after["c1"].standby) == (after["c1"].active, after["b1"].active)


def test_without_members_there_are_no_targets():
    assert assign({}, {"s": 3}, stateful=("s",), standby_replicas=2) == {}


histories = st.lists(
    st.tuples(
        st.sets(st.sampled_from(["a1", "a2", "b1", "b2", "c1", "d1"]), min_size=1), st.integers(0, 2), st.integers(0, 7)
    ),
    min_size=1,
    max_size=4,
)


@given(histories)
def test_every_task_has_one_owner_and_no_process_two_copies(history):
    targets: dict[str, TasksByType] = {}
    for members, replicas, count in history:
        counts = {"s0": count, "s1": 3}
        targets = again(targets, members, counts, stateful=("s1",), standby_replicas=replicas)
        assert set(targets) == set(members)
        active = sorted(task for target in targets.values() for task in target.active)
        assert active == sorted(TaskId(name, number) for name in counts for number in range(counts[name]))
        processes = {member[0] for member in members}
        for task in active:
            copies = [
                member[0]
                for member, (active_tasks, standby, _) in targets.items()
                if task in active_tasks or task in standby
            ]
            assert len(copies) == len(set(copies))
            assert len(copies) == (min(1 + replicas, len(processes)) if task.subtopology_id == "s1" else 1)


@given(histories)
def test_the_same_assignment_again_moves_no_task(history):
    members, _replicas, count = history[-1]
    counts = {"s0": count, "s1": 3}
    one_a_process = {member for member in members if member.endswith("1")} or members
    before = again({}, one_a_process, counts)
    assert again(before, one_a_process, counts) == before


def test_of_a_thousand_tasks_each_of_twenty_members_has_fifty():
    before = first([f"{chr(97 + number)}1" for number in range(19)], s0=500, s1=500)
    after = again(before, [*before, "t1"], {"s0": 500, "s1": 500}, stateful=("s1",), standby_replicas=1)
    assert sizes(after) == [50] * 20


def test_a_second_standby_task_goes_to_the_least_loaded_process_as_in_kafka():
    # Kafka looks at the first previous standby member alone, and that is the one with the first standby task.
    task = TaskId("0", 0)
    previous = {
        "a": TasksByType(active=frozenset({task})),
        "b": TasksByType(standby=frozenset({task})),
        "b-new": TasksByType(),
        "c": TasksByType(standby=frozenset({task})),
    }
    members = {name: AssignedMember(name, tasks) for name, tasks in previous.items()}
    targets = assign(members, {"0": 1}, stateful=["0"], standby_replicas=2)
    assert [name for name, target in targets.items() if target.standby] == ["b", "b-new"]
