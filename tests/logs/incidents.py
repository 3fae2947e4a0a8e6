"""Log directories of incidents, made in virtual time by the light broker's own parts: equal files in each run."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sharelens.broker.simulator.crowd import Crowd
from sharelens.broker.simulator.producers import Producers
from sharelens.broker.simulator.settings import Habits, SimulationSettings, profile
from sharelens.broker.simulator.simulation import simulate
from sharelens.broker.simulator.streams_members import SOURCE_PARTITIONS, SOURCE_TOPIC, StreamsApplication
from sharelens.broker.simulator.world import DEAD_LETTERS_PREFIX, World
from state_model.topics import OFFSETS_TOPIC, STATE_TOPIC
from tools.record_answers.logs import BATCH_HEADER, LENGTH_BYTES, set_file_times, time_range

GROUP, TOPIC, STREAMS_GROUP = "billing", "orders", "word-count"
DEAD_LETTERS = f"{DEAD_LETTERS_PREFIX}{GROUP}"
PARTITIONS, STATE_PARTITIONS = 2, 4
SECOND_MS, NEVER_MS = 1_000, 1 << 40
COPIED_AFTER_MS = 2_000
"""Time from the newest record to the copy: a busy log writes all the time."""
Outcome = Callable[[int, int, int], str]
HABITS = Habits(releases=0.25, rejects=0.25, forgets=0.25)
CHANCES = {"release": 0.1, "reject": 0.3, "forget": 0.6, "accept": 0.9}
"""The chances that HABITS take for an outcome."""
SETTINGS: Mapping[str, Any] = {
    "state_partitions": STATE_PARTITIONS,
    "partitions": PARTITIONS,
    "batch_records": 8,
    "produce_interval_ms": 2_000,
    "poll_interval_ms": 1_000,
    "habits": HABITS,
    "has_fixed_outcomes": True,
    "keeps_deliveries": False,
}


HEALTHY: Mapping[str, Any] = {
    "records": 1 << 40,
    "duration_ms": 12 * 60 * SECOND_MS,
    "topics": 2,
    "partitions": 2,
    "state_partitions": STATE_PARTITIONS,
    "batch_records": 8,
    "produce_interval_ms": 2_000,
    "poll_interval_ms": 1_000,
    "admin_interval_ms": 0,
    "checkpoints": 1,
    "restarts": 0,
    "keeps_deliveries": False,
}
HEALTHY_GROUPS = 12


def accepted(partition: int, offset: int, count: int) -> str:
    """The outcome of every delivery, where nothing is wrong."""
    return "accept"


class _World(World):
    """A world in which the outcome of a delivery follows from partition, offset and delivery count."""

    def __init__(self, settings: SimulationSettings, directory: Path, outcome: Outcome) -> None:
        super().__init__(settings, 7, directory)
        self._outcome = outcome

    def fixed_chance(self, *names: object) -> float:
        _, _, partition, offset, count = names
        return CHANCES[self._outcome(int(str(partition)), int(str(offset)), int(str(count)))]


class Cluster:
    """A broker with a topic, producers, and a group whose members have all partitions of it."""

    def __init__(self, directory: Path, outcome: Outcome, settings: Mapping[str, Any]) -> None:
        self.world = _World(SimulationSettings(**{**SETTINGS, **settings}), directory, outcome)
        self.catalog = self.world.broker.catalog
        self.catalog.create(TOPIC, PARTITIONS)
        configs = {"share.auto.offset.reset": "earliest"}
        if self.world.settings.has_dead_letters:
            configs["errors.deadletterqueue.topic.name"] = DEAD_LETTERS
        self.catalog.set_group_configs(GROUP, configs)
        self.crowd = Crowd(self.world, GROUP, (TOPIC,))
        self.crowd.gather()
        Producers(self.world).start()

    def run_for(self, seconds: int) -> None:
        """Let time pass."""
        until_ms = self.world.clock.now_ms + seconds * SECOND_MS
        self.world.timers.after_ms(seconds * SECOND_MS, lambda: None)
        self.world.clock.run_while(lambda: self.world.clock.now_ms < until_ms)

    def poll_every(self, poll_interval_ms: int) -> None:
        """Let members poll at another interval from their next poll on."""
        self.world.settings = replace(self.world.settings, poll_interval_ms=poll_interval_ms)

    def ends(self) -> dict[int, int]:
        """The high watermark of each partition of the topic."""
        logs = {partition: self.world.broker.logs.get(TOPIC, partition) for partition in range(PARTITIONS)}
        return {partition: log.high_watermark for partition, log in logs.items() if log is not None}


def _minutes(minutes: int) -> Callable[[Cluster], None]:
    return lambda cluster: cluster.run_for(60 * minutes)


def _silent(cluster: Cluster) -> None:
    cluster.run_for(60)
    cluster.poll_every(NEVER_MS)
    cluster.run_for(360)


def _without_members(cluster: Cluster) -> None:
    cluster.run_for(60)
    cluster.crowd.disperse()
    cluster.run_for(420)


def _lost_letters(cluster: Cluster) -> None:
    cluster.run_for(60)
    cluster.catalog.delete(DEAD_LETTERS)
    cluster.run_for(60)


def _reset(cluster: Cluster) -> None:
    cluster.run_for(60)
    cluster.crowd.disperse()
    cluster.run_for(60)
    cluster.world.broker.share_offsets.alter(GROUP, {TOPIC: cluster.ends()})
    cluster.crowd.gather()
    cluster.run_for(30)


def _topic_deleted(cluster: Cluster) -> None:
    cluster.run_for(60)
    cluster.catalog.delete(TOPIC)
    cluster.run_for(60)


def _not_ready(cluster: Cluster) -> None:
    cluster.catalog.create(SOURCE_TOPIC, SOURCE_PARTITIONS)
    StreamsApplication(cluster.world, STREAMS_GROUP).start()
    cluster.run_for(60)
    cluster.catalog.delete(SOURCE_TOPIC)
    cluster.run_for(120)


def _records_deleted(cluster: Cluster) -> None:
    cluster.run_for(60)
    cluster.poll_every(NEVER_MS)
    cluster.run_for(30)
    for partition, end in cluster.ends().items():
        log = cluster.world.broker.logs.get(TOPIC, partition)
        assert log is not None
        log.delete_records(end - 5)
    cluster.run_for(5)


def _with_broken_batch(logs: Path) -> None:
    """A bit of the second record batch of each state partition is another one."""
    for path in logs.glob("__share_group_state-*/*.log"):
        content = bytearray(path.read_bytes())
        if content:
            second = LENGTH_BYTES + BATCH_HEADER.unpack_from(content)[1]
            content[second + BATCH_HEADER.size + 20] ^= 1
            path.write_bytes(content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """What happens, and the folders (as a prefix of their names) that the third copy lacks."""

    happens: Callable[[Cluster], None]
    outcome: Outcome = accepted
    settings: Mapping[str, Any] = field(default_factory=dict)
    lost: str
    damage: Callable[[Path], None] = lambda logs: None


INCIDENTS: Mapping[str, Incident] = {
    "a head that nobody finishes": Incident(
        happens=_minutes(5),
        outcome=lambda partition, offset, count: "forget" if (partition, offset) == (0, 40) else "accept",
        settings={"lock_duration_ms": 60_000, "delivery_count_limit": 10},
        lost="__consumer_offsets-",
    ),
    "members that poll no more": Incident(happens=_silent, lost="__consumer_offsets-"),
    "a group without members": Incident(happens=_without_members, lost="__consumer_offsets-"),
    "records that no delivery gets done": Incident(
        happens=_minutes(4),
        outcome=lambda partition, offset, count: "accept" if offset % 3 else "release",
        settings={"delivery_count_limit": 3},
        lost=f"{TOPIC}-",
    ),
    "dead letters that are gone": Incident(
        happens=_lost_letters,
        outcome=lambda partition, offset, count: "accept" if offset % 10 else "reject",
        settings={"has_dead_letters": True, "kafka_version": "4.4"},
        lost=f"{DEAD_LETTERS}-",
    ),
    "a reset over unfinished records": Incident(happens=_reset, lost=f"{TOPIC}-"),
    "a topic that was deleted": Incident(happens=_topic_deleted, lost="__consumer_offsets-"),
    "a lag that grows": Incident(
        happens=_minutes(16), settings={"poll_interval_ms": 4_000, "fetch_records": 1}, lost=f"{TOPIC}-"
    ),
    "members that come and go": Incident(
        happens=_minutes(7), settings={"habits": replace(HABITS, dies=0.0, leaves=0.3)}, lost="__share_group_state-"
    ),
    "a streams group without its topic": Incident(happens=_not_ready, lost="__consumer_offsets-"),
    "records deleted before they were done": Incident(happens=_records_deleted, lost=f"{TOPIC}-"),
    "a broken record batch": Incident(happens=_minutes(2), damage=_with_broken_batch, lost="__share_group_state-0"),
}


def make_incident(incident: Incident, folder: Path) -> None:
    """Write the copies of an incident's log: `whole`, `plain` without its times, and `fewer` without a log."""
    cluster = Cluster(folder / "whole", incident.outcome, incident.settings)
    incident.happens(cluster)
    now_ms = cluster.world.clock.now_ms
    cluster.world.close()
    incident.damage(folder / "whole")
    shutil.copytree(folder / "whole", folder / "plain", copy_function=shutil.copy)
    _copy_with_times(folder, now_ms, "fewer", lambda name: name.startswith(incident.lost))


def make_healthy(profile_name: str, folder: Path, *, produced_ms: int = 0) -> None:
    """Write the copies of the log of a simulated profile without its faults: `whole`, `plain` without its times, and
    `ordinary`: the state log, the offsets log and the checkpoints. `produced_ms`: when producers stop; 0: never."""
    settings = profile(profile_name, **HEALTHY, produced_ms=produced_ms)
    faultless = replace(settings.habits, rejects=0.0, forgets=0.0, dies=0.0, leaves=0.0)
    groups = min(settings.groups, HEALTHY_GROUPS)
    settings = replace(settings, habits=faultless, groups=groups)
    counts = simulate(settings, 7, folder / "whole").counts
    shutil.copytree(folder / "whole", folder / "plain", copy_function=shutil.copy)
    now_ms = settings.start_ms + counts.virtual_ms
    _copy_with_times(folder, now_ms, "ordinary", lambda name: not name.startswith((STATE_TOPIC, OFFSETS_TOPIC)))


def _copy_with_times(folder: Path, now_ms: int, copy: str, left_out: Callable[[str], bool]) -> None:
    """Give the files of `whole` the times of a broker's, and make a copy without some folders."""
    logs = folder / "whole"
    set_file_times(logs, replace(time_range(logs), last_ms=now_ms), COPIED_AFTER_MS)
    shutil.copytree(logs, folder / copy)
    for path in (folder / copy).iterdir():
        if path.is_dir() and left_out(path.name):
            shutil.rmtree(path)
