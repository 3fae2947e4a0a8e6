"""What the audit and the judge say of damaged logs of a cluster, and its part of the page of detection."""

import functools
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from tests.audit.between_judge import JUDGED, judge
from tests.audit.judged_logs import Violation
from tests.audit.random_worlds import DAMAGES, GROUPS, PARTITIONS, damaged_world
from tests.audit.world import audited
from tests.once import computed_once

WORLDS: Final = 8
QUICK: Final = 3
"""Every third world is enough for `make test`; the soak and the page take all."""
SIZES: Final = (-30, -1, 1, 7, 5000, 5000)
ABOUT_MINUTES: Final = frozenset({
    "state_epoch_beyond_group", "left_state_fences_group", "initialized_without_state", "no_common_group",
    "state_without_group", "state_after_group_deletion", "unknown_topic_partition", "state_epoch_below_group",
})  # fmt: skip
"""Rules about stretches of time, which no record marks alone."""
INVISIBLE: Final = {
    "delivery complete count": "the count stays within the topic, or its record is of another leader epoch",
    "end of the topic": "the end stays behind all states",
    "end of the topic after an election": "the end stays behind all states",
    "groups of another cluster": "fewer than three groups are initialized at the end",
    "last offset": "the batch stays within the topic",
    "leader epoch": "the epoch stays at or below the topic's",
    "log start of the topic": "offsets below it may be passed without an outcome, and no others were",
    "list of partitions": "an empty list or target is that of a group at its beginning, or is replaced within a minute",
    "number of a group": "assignments may lag behind the group epoch, so that a smaller one is legal",
    "partition not in the metadata": "the partition has no state, or comes within a minute of it",
    "record of a group lost": "the log cleaner removes records of groups, too",
    "record of a group twice": "a coordinator may write the same value again, but for a group epoch",
    "record of the state log lost": "no later write passes the offsets of a lost update; the rules of the state log "
    "look for snapshots",
    "records of groups exchanged": "records of two groups, or of two members, have no order",
    "share partition deleted": "its group is deleted within a minute, or it is created again",
    "share partition lost": "its group is deleted within a minute",
    "start offset": "the offset stays within the topic",
    "state epoch": "the epoch stays between those of the initialization and of the group",
    "tail of the groups' log lost": "a copy made earlier",
    "tail of the state log lost": "a copy made earlier",
    "topic copied earlier": "a copy made earlier",
}
"""Why a damage may leave logs that a healthy cluster could have written."""
HEAD: Final = """## Pairs of damaged logs

Logs of random operations on share groups, two of them or one damaged at random. A second judge, which looks at every
record and every moment by itself, says which rules between the logs are violated, and where. The audit has to name the
same rules at the same places, no more and no less; property tests compare them for many more logs and several damages
at once. *Legal*: the judge has nothing to say, and the audit is silent.

| damage | illegal logs | found, at the place | legal logs | rules | legal, because |
|---|---|---|---|---|---|"""


@dataclass(kw_only=True)
class Outcome:
    """What became of the damaged logs; `mistakes`: what audit and judge say differently."""

    illegal: int = 0
    detected: int = 0
    legal: int = 0
    rules: Counter[str] = field(default_factory=Counter)
    mistakes: list[str] = field(default_factory=list)


def named(rows: list[dict[str, Any]]) -> set[Violation]:
    """The violations that the findings of an audit name, as far as the judge knows their rules."""
    return {
        Violation(row["rule"], row["group_id"], row["partition"],
            None if row["rule"] in ABOUT_MINUTES else row["first_log_offset"])
        for row in rows
        if row["rule"] in JUDGED
    }  # fmt: skip


@functools.cache
def outcome(name: str, step: int = 1) -> Outcome:
    """Plants a damage into some worlds, each `step`th."""
    return computed_once(f"outcomes/{step}/{name}", lambda: _outcome(name, step))


def _outcome(name: str, step: int) -> Outcome:
    result = Outcome()
    for seed in range(0, WORLDS, step):
        chance = random.Random(f"{name}-{seed}")
        operations = [
            (
                chance.choice(["create", "write", "write", "join", "leave", "reset", "delete"]),
                chance.choice(GROUPS),
                chance.randrange(PARTITIONS),
                chance.choice([0, 1, 59, 61, 130]),
            )
            for _ in range(10)
        ]
        world = damaged_world(operations, [(name, chance.randrange(200), chance.choice(SIZES))])
        judged, reported_violations = judge(world), named(audited(world))
        result.illegal += bool(judged)
        result.legal += not judged
        result.detected += bool(judged) and reported_violations >= judged
        result.rules.update({violation.rule for violation in judged})
        if reported_violations != judged:
            result.mistakes.append(
                f"world {seed}: judge {sorted(judged - reported_violations)}, "
                f"audit {sorted(reported_violations - judged)}"
            )
    return result


def section() -> str:
    """The part of the page of detection about damages of pairs of logs."""
    lines = [HEAD]
    for name in sorted(DAMAGES):
        result = outcome(name)
        rules = ", ".join(f"`{rule}`" for rule, _ in sorted(result.rules.items(), key=lambda item: (-item[1], item[0])))
        why = INVISIBLE[name] if result.legal else "-"
        lines.append(f"| {name} | {result.illegal} | {result.detected} | {result.legal} | {rules or '-'} | {why} |")
    return "\n".join([*lines, ""])
