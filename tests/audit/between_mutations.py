"""Damages between the logs of a cluster, planted into legal ones, and what the audit finds of them.

The logs are those of simulated and of recorded brokers, stretched in time: a mismatch counts when it outlasts 60 s. An
operator changes bytes, records, places or the ends of logs, and knows no rule. Near ones change as much and leave logs
that healthy brokers write.
"""

import functools
import random
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sharelens.broker.simulator.settings import profile
from sharelens.broker.simulator.simulation import simulate
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.audits.audit import AuditChoice, audit
from sharelens.source.request import Source
from sharelens.tables.logs.tables import open_log_tables
from sharelens.tables.where import Span
from state_model.share_records import ShareSnapshot, ShareUpdate
from tests.audit.cluster import ASSIGNMENT, EPOCH, TARGET, Cluster, Damage, read_cluster
from tests.audit.copy_damages import cleaned, groups_copied_earlier, other_groups, state_copied_earlier, without_groups
from tests.audit.group_record_damages import (
    changed,
    cut_value,
    has_assignment,
    moved_group,
    of_type,
    parted_group,
    plus,
    repeated_epoch,
    with_one_more,
    without_member_tombstone,
    without_partitions,
)
from tests.audit.life_damages import deleted_group, early_tombstone, forgotten_state, on_values, unlisted
from tests.audit.lost_outcomes import behind_log_start, copied_earlier, without_outcome
from tests.audit.topic_damages import on_topic
from tests.datasets import dataset
from tests.once import computed_once, made_once

SIMULATED = (("steady", 1), ("admin", 2), ("admin", 3), ("admin", 4))
SIZES = {"records": 600, "state_partitions": 3, "partitions": 2, "groups": 6, "checkpoints": 1}
RECORDED = ("v44",)
QUICK = slice(1, None, 3)
"""The clusters that are enough for `make test`, a simulated and a recorded one; the soak and the page take all."""


@dataclass(frozen=True, kw_only=True)
class Operator:
    """A damage. `rules`: codes of which one is expected; without any the logs stay legal."""

    name: str
    damage: Damage
    rules: frozenset[str] = frozenset()


@dataclass(kw_only=True)
class Detection:
    """What became of the damaged logs; `mistakes`: lines about misses and false alarms."""

    logs: int = 0
    detected: int = 0
    rules: Counter[str] = field(default_factory=Counter)
    mistakes: list[str] = field(default_factory=list)


FAR = 1_000_000
OPERATORS = (
    Operator(name="group epoch appended twice", damage=repeated_epoch, rules=frozenset({"group_epoch_skips"})),
    Operator(name="group epoch + 3", damage=changed(EPOCH, plus("epoch", 3), is_later=True),
        rules=frozenset({"group_epoch_skips"})),
    Operator(name="group epoch - 3", damage=changed(EPOCH, plus("epoch", -3), is_later=True),
        rules=frozenset({"group_epoch_skips", "epochs_out_of_order"})),
    Operator(name="assignment epoch + 9", damage=changed(TARGET, plus("assignment_epoch", 9)),
        rules=frozenset({"epochs_out_of_order"})),
    Operator(name="member epoch + 9", damage=changed(ASSIGNMENT, plus("member_epoch", 9)),
        rules=frozenset({"epochs_out_of_order"})),
    Operator(name="state of a member + 1", damage=changed(ASSIGNMENT, plus("state", 1)),
        rules=frozenset({"member_state"})),
    Operator(name="current assignment of one partition more", damage=changed(
        ASSIGNMENT, with_one_more, where=has_assignment), rules=frozenset({"assigned_beyond_target"})),
    Operator(name="current assignment empty", damage=changed(
        ASSIGNMENT, without_partitions, where=has_assignment), rules=frozenset({"target_not_assigned"})),
    Operator(name="tombstone of an assignment never appended", damage=without_member_tombstone,
        rules=frozenset({"member_tombstones_out_of_order"})),
    Operator(name="records of a group in another partition", damage=moved_group, rules=frozenset({"misplaced_group"})),
    Operator(name="some records of a group in another partition", damage=parted_group,
        rules=frozenset({"group_in_many_partitions"})),
    Operator(name="record of type 9", damage=of_type(9), rules=frozenset({"preview_record_type"})),
    Operator(name="record of type 18", damage=of_type(18), rules=frozenset({"preview_record_type"})),
    Operator(name="value of a group record cut short", damage=cut_value, rules=frozenset({"undecodable_group_record"})),
    Operator(name="share partition never created", damage=forgotten_state,
        rules=frozenset({"initialized_without_state"})),
    Operator(name="share partition deleted, its group lists it", damage=early_tombstone,
        rules=frozenset({"initialized_without_state"})),
    Operator(name="list of partitions empty", damage=unlisted, rules=frozenset({"state_without_group"})),
    Operator(name="group deleted, its state left", damage=deleted_group(is_created_again=False),
        rules=frozenset({"state_after_group_deletion"})),
    Operator(name="group created again, old state left", damage=deleted_group(is_created_again=True),
        rules=frozenset({"left_state_fences_group", "state_without_group"})),
    Operator(name="state epoch of snapshots + 50", damage=on_values(
        lambda value: {"state_epoch": value.state_epoch + 50}, ShareSnapshot),
        rules=frozenset({"state_epoch_beyond_group"})),
    Operator(name="state epoch of snapshots - 1", damage=on_values(
        lambda value: {"state_epoch": value.state_epoch - 1}, ShareSnapshot),
        rules=frozenset({"state_epoch_below_group"})),
    Operator(name="group records of another cluster", damage=other_groups, rules=frozenset({"no_common_group"})),
    Operator(name="user topic ends before its states", damage=on_topic(
        lambda topic, last: topic._replace(count=last - 5)),
        rules=frozenset({"batch_beyond_end", "batch_beyond_cut_end"})),
    Operator(name="tail of the user topic cut off by an election", damage=on_topic(
        lambda topic, last: topic._replace(count=last - 5, leader_epoch=topic.leader_epoch + 1)),
        rules=frozenset({"batch_beyond_cut_end"})),
    Operator(name="start offset of writes beyond the topic", damage=on_values(
        lambda value: {"start_offset": FAR, "state_batches": ()}, ShareUpdate),
        rules=frozenset({"start_offset_beyond_end"})),
    Operator(name="update with the outcome of records never appended", damage=without_outcome(is_released=False),
        rules=frozenset({"start_offset_passes_record"})),
    Operator(name="records released, and passed by the next write", damage=without_outcome(is_released=True),
        rules=frozenset({"start_offset_passes_record"})),
    Operator(name="delivery complete count beyond the topic", damage=on_values(
        lambda value: {"delivery_complete_count": FAR}, ShareUpdate),
        rules=frozenset({"complete_count_beyond_end", "negative_lag"})),
)  # fmt: skip
NEAR = (
    Operator(name="logs as they are", damage=lambda cluster, chance: cluster),
    Operator(name="a round of the log cleaner", damage=cleaned),
    Operator(name="group coordinator's log copied earlier", damage=groups_copied_earlier),
    Operator(name="state log copied earlier", damage=state_copied_earlier),
    Operator(name="group coordinator's log not copied", damage=without_groups),
    Operator(name="user topic with more records", damage=on_topic(
        lambda topic, last: topic._replace(count=topic.count + 500))),
    Operator(name="user topic up to its last state", damage=on_topic(
        lambda topic, last: topic._replace(count=max(topic.count, last + 1), leader_epoch=topic.leader_epoch + 1))),
    Operator(name="update never appended, the log start has passed its records",
        damage=behind_log_start(without_outcome(is_released=False))),
    Operator(name="update never appended, user topics copied earlier",
        damage=copied_earlier(without_outcome(is_released=False))),
    Operator(name="user topic copied earlier", damage=on_topic(
        lambda topic, last: topic._replace(count=last - 5, newest_ms=1_000))),
)  # fmt: skip


@functools.cache
def clusters() -> tuple[Cluster, ...]:
    """Legal logs of simulated and of recorded brokers."""
    simulated = [
        made_once(
            f"audited-clusters/{name}-{seed}",
            lambda folder, name=name, seed=seed: simulate(profile(name, kafka_version="4.4", **SIZES), seed, folder),
        )
        for name, seed in SIMULATED
    ]
    recorded = [read_cluster(dataset(name) / "logs", count=4) for name in RECORDED]
    return (*(read_cluster(folder, count=3) for folder in simulated), *recorded)


def audited(cluster: Cluster) -> list[dict[str, Any]]:
    """The findings (errors and warnings) of the logs."""
    with tempfile.TemporaryDirectory(prefix="sharelens-audit-") as folder:
        cluster.write(Path(folder))
        with open_log_tables(Source(log_dirs=(folder,))) as evidence:
            report = audit(evidence, KeyFilter(), Span(), AuditChoice(version="4.4"))
            rows: list[dict[str, Any]] = report.parts["findings"].table.to_pylist()
    return rows


def detection(operator: Operator, places: slice = slice(None)) -> Detection:
    """Plants the damage into the clusters at these places, or into each."""
    return computed_once(f"detections-between-logs/{places}/{operator.name}", lambda: _detection(operator, places))


def _detection(operator: Operator, places: slice) -> Detection:
    result = Detection()
    for seed, cluster in list(enumerate(clusters()))[places]:
        try:
            damaged = operator.damage(cluster, random.Random(seed))
        except IndexError:
            continue
        rules = {row["rule"] for row in audited(damaged)}
        result.logs += 1
        result.rules.update(rules)
        if operator.rules & rules:
            result.detected += 1
        elif operator.rules:
            result.mistakes.append(f"cluster {seed}: missed, the audit says {sorted(rules)}")
        elif rules:
            result.mistakes.append(f"cluster {seed}: false alarm {sorted(rules)}")
    return result


HEAD = """## Between logs

The same for logs of whole clusters, simulated and recorded ones, stretched in time: state log, `__consumer_offsets` and
user topics. *Detected*: the audit names an expected rule.

| damage | damaged logs | detected | rules |
|---|---|---|---|"""
NEAR_HEAD = """
Changes that leave logs of healthy brokers have no error and no warning:

| change | logs | findings |
|---|---|---|"""


def section() -> str:
    """The part of the page of detection about damages between logs."""
    lines = [HEAD]
    for operator in OPERATORS:
        result = detection(operator)
        rules = ", ".join(
            f"`{rule}`" for rule in sorted(result.rules, key=lambda rule: (-result.rules[rule], rule))[:4]
        )
        lines.append(f"| {operator.name} | {result.logs} | {result.detected} | {rules or '-'} |")
    lines.append(NEAR_HEAD)
    for operator in NEAR:
        result = detection(operator)
        lines.append(f"| {operator.name} | {result.logs} | {result.rules.total()} |")
    return "\n".join([*lines, ""])
