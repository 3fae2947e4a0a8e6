"""Runs a workload from its set-up to the end of its journal."""

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from sharelens.workloads.admin import Admin, WorkloadError
from sharelens.workloads.checkpoints import Checkpoints
from sharelens.workloads.crew import Crew
from sharelens.workloads.journal import Journal, now_ms
from sharelens.workloads.load import Amount, Load
from sharelens.workloads.member import Orders
from sharelens.workloads.profiles import Profile
from sharelens.workloads.progress import Progress

LOCK_MS: Final = 1_500
HEARTBEAT_MS: Final = 500
SESSION_MS: Final = 3_000
LOOK_S: Final = 0.05
QUIET_MARGIN_MS: Final = 2_500
DRAIN_S: Final = 30.0
IDS_A_LINE: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadOptions:
    """The options of a run. The topic and the groups are created when they are missing, else used as they are."""

    bootstrap: str
    profile: Profile
    amount: Amount = field(default_factory=Amount)
    seed: int = 0
    topic: str
    group: str

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups."""
        if self.profile.groups == 1:
            return (self.group,)
        return tuple(f"{self.group}-{number}" for number in range(1, self.profile.groups + 1))

    @property
    def dead_letter_topic(self) -> str:
        """The dead-letter topic."""
        return f"dlq.{self.group}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Times:
    """Durations of a workload, as short as the broker's bounds allow."""

    lock_duration_ms: int
    heartbeat_interval_ms: int
    session_timeout_ms: int

    @property
    def drain_s(self) -> float:
        """Timeout after the last produced record; the records of a dead member stay locked for a while."""
        return DRAIN_S + 2 * (self.session_timeout_ms + self.lock_duration_ms) / 1000


class Workload:
    """A run. Raises WorkloadError, UnreachableError, or KafkaException when the cluster fails."""

    def __init__(self, options: WorkloadOptions, journal: Journal, checkpoints: Checkpoints | None = None) -> None:
        """`checkpoints` are written during each round and after it; only they send state RPCs."""
        self._options, self._journal, self._checkpoints = options, journal, checkpoints
        self._profile = options.profile
        self._random = random.Random(f"{options.seed} run")
        self._admin = Admin(options.bootstrap)
        self._progress = Progress(options.groups, options.profile.delivery_count_limit)
        journal.listen(self._progress.note)

    def run(self, is_over: Callable[[], bool] = lambda: False) -> None:
        """Set up, produce until `is_over` at most, consume until all records are settled, read the logs."""
        options, profile = self._options, self._profile
        write_beginning(self._journal, options)
        times = self._set_up()
        load = Load(options.bootstrap, profile, options.topic, options.seed, self._journal.write)
        rounds = profile.resets + 1
        for number in range(rounds):
            if number:
                self._reset(times)
            part = _part(options.amount, number, rounds)
            during = nullcontext() if self._checkpoints is None else self._checkpoints.during(f"round {number + 1}")
            with during:
                self._round(partial(produce, load, part, is_over), times)
        self._read_back()
        self._journal.write("end")

    def _set_up(self) -> _Times:
        options, profile, admin = self._options, self._profile, self._admin
        if profile.sends_dead_letters:
            admin.require_dead_letters()
            admin.create_topic(options.dead_letter_topic, 1, {"errors.deadletterqueue.group.enable": "true"})
        partitions = admin.create_topic(options.topic, profile.partitions)
        if partitions < profile.partitions:
            raise WorkloadError(f"topic {options.topic} has {partitions} partitions, {profile.partitions} are needed")
        times = _times(admin.broker_configs())
        configs = self._group_config(times)
        for group in options.groups:
            self._journal.write(
                "group_config", group=group, delivery_count_limit=profile.delivery_count_limit, configs=configs
            )
            admin.configure_group(group, configs)
        return times

    def _group_config(self, times: _Times) -> Mapping[str, str]:
        configs = {
            "share.auto.offset.reset": "earliest",
            "share.delivery.count.limit": str(self._profile.delivery_count_limit),
            "share.record.lock.duration.ms": str(times.lock_duration_ms),
            "share.heartbeat.interval.ms": str(times.heartbeat_interval_ms),
            "share.session.timeout.ms": str(times.session_timeout_ms),
        }
        if self._profile.sends_dead_letters:
            configs["errors.deadletterqueue.topic.name"] = self._options.dead_letter_topic
            configs["errors.deadletterqueue.copy.record.enable"] = "true"
        return configs | dict(self._profile.group_config)

    def _round(self, produce: Callable[[Callable[[], bool]], None], times: _Times) -> None:
        steady = self._orders(times, "member", self._profile.members)
        crashing = self._orders(times, "crashing", self._profile.crashing_members)
        with Crew(self._journal, steady, crashing) as crew:
            with in_background(produce) as produced:
                produced()
            crew.end_crashes()
            outcome = self._drain(times)
        self._journal.write("drained", groups=self._options.groups, outcome=outcome, produced=self._progress.produced())

    def _orders(self, times: _Times, role: str, count: int) -> list[Orders]:
        return [
            Orders(
                bootstrap=self._options.bootstrap,
                group=group,
                topic=self._options.topic,
                member=f"{role}-{number}",
                seed=self._options.seed,
                lock_duration_ms=times.lock_duration_ms,
            )
            for group in self._options.groups
            for number in range(1, count + 1)
        ]

    def _drain(self, times: _Times) -> str:
        """Wait until all records are settled, all are delivered and none comes for longer than a lock, or timeout."""
        deadline_s = time.monotonic() + times.drain_s
        while time.monotonic() < deadline_s:
            if self._progress.is_settled():
                return "settled"
            if self._progress.is_quiet(now_ms() - times.lock_duration_ms - QUIET_MARGIN_MS):
                return "quiet"
            time.sleep(LOOK_S)
        return "deadline"

    def _reset(self, times: _Times) -> None:
        """Move each partition's start offset to a random produced offset; the group is empty."""
        starts = {at: self._random.randrange(end) for at, end in sorted(self._progress.end_offsets().items())}
        if starts:
            self._write_reset(starts, "asked")
            self._admin.reset(self._options.group, self._options.topic, starts, times.drain_s)
            self._write_reset(starts, "done")

    def _write_reset(self, starts: Mapping[int, int], outcome: str) -> None:
        place = {"group": self._options.group, "topic": self._options.topic}
        for partition, start in starts.items():
            self._journal.write("reset", **place, partition=partition, start_offset=start, outcome=outcome)

    def _read_back(self) -> None:
        """Write the contents of the logs into the journal."""
        dead_letters = [self._options.dead_letter_topic] if self._profile.sends_dead_letters else []
        write_logs(self._journal, self._admin, (self._options.topic, *dead_letters))


def write_logs(journal: Journal, admin: Admin, topics: Iterable[str]) -> None:
    """Write the committed records of topics into the journal."""
    for topic in topics:
        for partition, reads in admin.read(topic).items():
            for begin in range(0, len(reads), IDS_A_LINE):
                offsets, ids = zip(*reads[begin : begin + IDS_A_LINE], strict=True)
                journal.write("log", topic=topic, partition=partition, offsets=offsets, ids=ids)
        journal.write("log_read", topic=topic)


def write_beginning(journal: Journal, options: WorkloadOptions, **fields: object) -> None:
    """Writes the first entry of a run: its options; `fields`: in addition, or instead."""
    option_fields = {
        "profile": options.profile.name,
        "seed": options.seed,
        "bootstrap": options.bootstrap,
        "topic": options.topic,
        "groups": options.groups,
        "clock_ms": int(time.time() * 1000),
    }
    journal.write("begin", **option_fields | fields)


@contextmanager
def in_background(work: Callable[[Callable[[], bool]], None]) -> Iterator[Callable[[], None]]:
    """Run `work(is_over)` in a thread; the yielded function waits for it, and raises its error."""
    is_over = threading.Event()
    problems: list[BaseException] = []

    def run() -> None:
        try:
            work(is_over.is_set)
        except BaseException as error:
            problems.append(error)

    thread = threading.Thread(target=run, name="load", daemon=True)

    def wait() -> None:
        thread.join()
        if problems:
            raise problems[0]

    thread.start()
    try:
        yield wait
    finally:
        is_over.set()
        thread.join()


def produce(load: Load, amount: Amount, is_over: Callable[[], bool], is_given_up: Callable[[], bool]) -> None:
    """Produce an amount until one of the two says that it is enough."""
    load.run(amount, lambda: is_over() or is_given_up())


def _part(amount: Amount, number: int, rounds: int) -> Amount:
    """The part of a round."""
    records = amount.records
    return Amount(
        records=None if records is None else records * (number + 1) // rounds - records * number // rounds,
        duration_s=None if amount.duration_s is None else amount.duration_s / rounds,
        rate=amount.rate,
    )


def _times(broker_configs: Mapping[str, str]) -> _Times:
    def at_least(name: str, shortest_ms: int) -> int:
        return max(shortest_ms, int(broker_configs.get(f"group.share.min.{name}", shortest_ms)))

    return _Times(
        lock_duration_ms=at_least("record.lock.duration.ms", LOCK_MS),
        heartbeat_interval_ms=at_least("heartbeat.interval.ms", HEARTBEAT_MS),
        session_timeout_ms=at_least("session.timeout.ms", SESSION_MS),
    )
