"""Checks a journal. The rules are guarantees of the broker, so an outcome unknown to the client
(a failed or unanswered acknowledgement, a produce without an answer) is never a finding.

- Within one initialisation of a share partition (from one reset of its start offset to the next), no record is
  delivered again after an acknowledgement that ended it was confirmed.
- Delivery counts never exceed the highest limit that was in force so far.
- Every acknowledged produce, of a committed transaction if of any, is in the log and was delivered to every group.
- An application of Kafka Streams counts every acknowledged record once.
- Members of consumer groups: see sharelens.workloads.check_consumers.
- No record of an aborted transaction is delivered to a group that reads committed records, and every delivery is of
  the record that was produced at that offset.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from sharelens.workloads import check_consumers
from sharelens.workloads.check_consumers import ConsumerGroupChecker
from sharelens.workloads.findings import Finding, place_name
from sharelens.workloads.journal import Entry

_ENDING: Final = frozenset({"accept", "reject"})
_Place = tuple[str, int, int]
_Partition = tuple[str, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The result of a check. `counts` of the journal: deliveries, acks_confirmed, acks_ambiguous, …"""

    findings: tuple[Finding, ...]
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ended:
    """A confirmed accept or reject of a record: the time of its confirmation, and its delivery count."""

    at_ms: int
    delivery_count: int
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Produced:
    """An acknowledged produce."""

    record_id: int
    transaction: int | None
    line: int


@dataclass(slots=True)
class _SharePartition:
    """The state of a partition for a group since its last reset; `start_offset` None: unknown after a reset."""

    start_offset: int | None = 0
    ended: dict[int, _Ended] = field(default_factory=dict)
    delivered: set[int] = field(default_factory=set)


def check(entries: Iterable[tuple[int, Entry]]) -> CheckResult:
    """Check the entries of a journal, in order."""
    checker = _JournalChecker()
    for line, entry in entries:
        checker.take(line, entry)
    checker.finish()
    return CheckResult(findings=tuple(checker.findings), counts=dict(checker.counts))


class _JournalChecker:
    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.counts: Counter[str] = Counter()
        self._groups: list[str] = []
        self._topics: set[str] = set()
        self._consumers = ConsumerGroupChecker()
        self._limits: dict[str, int] = {}
        self._reads_committed: set[str] = set()
        self._partitions: defaultdict[_Partition, _SharePartition] = defaultdict(_SharePartition)
        self._produced: dict[_Place, _Produced] = {}
        self._outcomes: dict[int, str] = {}
        self._log: dict[_Place, int | None] = {}
        self._topics_read: set[str] = set()
        self._counted: dict[int, int] = {}
        self._application: str | None = None
        self._deliveries: list[tuple[int, str, _Place, int | None]] = []

    def take(self, line: int, entry: Entry) -> None:
        """Check one entry."""
        if entry["event"] in check_consumers.EVENTS:
            self._consumers.take(line, entry)
        match entry["event"]:
            case "read":
                self._group_read(line, entry)
            case "delivery":
                self._delivery(line, entry)
            case "ack":
                self._ack(line, entry)
            case "produce":
                self._produce(line, entry)
            case "transaction":
                self._outcomes[entry["transaction"]] = entry["outcome"]
                self.counts[f"transactions_{entry['outcome']}"] += 1
            case "log" | "log_read":
                self._read(entry)
            case _:
                self._administered(entry)

    def finish(self) -> None:
        """Check the rules on the whole journal."""
        self._check_deliveries()
        if self._application is not None:
            self._check_counts(self._application)
        self.findings += self._consumers.findings()
        self.counts += self._consumers.counts
        if self._topics and self._topics <= self._topics_read:
            self._check_groups(self._check_log())
        elif self._produced:
            self.counts["produced_unchecked"] = len(self._produced)

    def _administered(self, entry: Entry) -> None:
        match entry["event"]:
            case "begin":
                self._groups, self._topics = list(entry["groups"]), {entry["topic"], *entry.get("topics", ())}
            case "group_config":
                group = entry["group"]
                self._limits[group] = max(self._limits.get(group, 0), entry["delivery_count_limit"])
                if entry["configs"].get("share.isolation.level") == "read_committed":
                    self._reads_committed.add(group)
            case "reset":
                self._reset(entry)
            case "killed":
                self.counts["members_killed"] += 1
            case "counted":
                self._counted.update(zip(entry["ids"], entry["counts"], strict=True))
            case "counts_read":
                self._application = entry["group"]
            case "problem":
                self.counts["problems"] += 1

    def _reset(self, entry: Entry) -> None:
        at = entry["group"], entry["topic"], entry["partition"]
        is_done = entry["outcome"] == "done"
        self.counts["resets"] += is_done
        self._partitions[at] = _SharePartition(start_offset=entry["start_offset"] if is_done else None)

    def _read(self, entry: Entry) -> None:
        if entry["event"] == "log_read":
            self._topics_read.add(entry["topic"])
            return
        for offset, record_id in zip(entry["offsets"], entry["ids"], strict=True):
            self._log[entry["topic"], entry["partition"], offset] = record_id
        if entry["topic"] not in self._topics:
            self.counts["dead_letters"] += len(entry["offsets"])

    def _produce(self, line: int, entry: Entry) -> None:
        self.counts[f"produced_{entry['outcome']}"] += 1
        if entry["outcome"] == "acknowledged":
            self._produced[entry["topic"], entry["partition"], entry["offset"]] = _Produced(
                record_id=entry["id"], transaction=entry.get("transaction"), line=line
            )

    def _delivery(self, line: int, entry: Entry) -> None:
        group, count, offset = entry["group"], entry["delivery_count"], entry["offset"]
        place = entry["topic"], entry["partition"], offset
        self.counts["deliveries"] += 1
        self.counts["redeliveries"] += count > 1
        limit = self._limits.get(group)
        if limit is not None and count > limit:
            why = f"delivery count {count}, the limit was never above {limit}"
            self._find("count_above_limit", group, place, why, line)
        share_partition = self._partitions[group, entry["topic"], entry["partition"]]
        share_partition.delivered.add(offset)
        ended = share_partition.ended.get(offset)
        if ended is not None and _may_be_older(entry, ended):
            self.counts["deliveries_ambiguous"] += 1
        elif ended is not None:
            why = f"delivered again, although line {ended.line} confirms its end at delivery {ended.delivery_count}"
            self._find("delivered_after_end", group, place, why, line)
        self._deliveries.append((line, group, place, entry["id"]))

    def _group_read(self, line: int, entry: Entry) -> None:
        """Records that a member of a consumer group read."""
        group, topic, partition = entry["group"], entry["topic"], entry["partition"]
        self._partitions[group, topic, partition].delivered.update(entry["offsets"])
        for offset, record_id in zip(entry["offsets"], entry["ids"], strict=True):
            self._deliveries.append((line, group, (topic, partition, offset), record_id))

    def _ack(self, line: int, entry: Entry) -> None:
        is_confirmed, offsets = entry["outcome"] == "confirmed", entry["offsets"]
        self.counts["acks_confirmed" if is_confirmed else "acks_ambiguous"] += len(offsets)
        if not is_confirmed or entry["type"] not in _ENDING:
            return
        ended = self._partitions[entry["group"], entry["topic"], entry["partition"]].ended
        for offset, count in zip(offsets, entry["delivery_counts"], strict=True):
            ended[offset] = _Ended(at_ms=entry["at_ms"], delivery_count=count, line=line)

    def _check_deliveries(self) -> None:
        """Check that each delivery is of the produced record, and of no aborted transaction."""
        for line, group, place, record_id in self._deliveries:
            produced = self._produced.get(place)
            if produced is None:
                continue
            if record_id != produced.record_id:
                self._find("other_record", group, place, f"record {record_id}, not {produced.record_id}", line)
            if group in self._reads_committed and self._ended_as(produced, "aborted"):
                why = f"transaction {produced.transaction} was aborted"
                self._find("aborted_delivered", group, place, why, line)

    def _check_log(self) -> list[_Place]:
        """Check that each committed record is in the log, and no aborted one; the places of committed records."""
        committed = []
        for place, produced in self._produced.items():
            is_there = self._log.get(place, -1) == produced.record_id
            if produced.transaction is None or self._ended_as(produced, "committed"):
                committed.append(place)
                if not is_there:
                    why = f"record {produced.record_id} is not in the log"
                    self._find("produce_missing", None, place, why, produced.line)
            elif is_there and self._ended_as(produced, "aborted"):
                why = f"transaction {produced.transaction} was aborted"
                self._find("aborted_visible", None, place, why, produced.line)
        self.counts["committed"] = len(committed)
        return committed

    def _check_groups(self, committed: list[_Place]) -> None:
        for group in self._groups:
            for topic, partition, offset in committed:
                share_partition = self._partitions[group, topic, partition]
                is_due = share_partition.start_offset is not None and offset >= share_partition.start_offset
                if is_due and offset not in share_partition.delivered:
                    self._find("undelivered", group, (topic, partition, offset), "never delivered to the group", None)

    def _check_counts(self, application: str) -> None:
        """Check that an application has counted each acknowledged record, and none twice."""
        self.counts["counted"] = len(self._counted)
        for place, produced in self._produced.items():
            count = self._counted.get(produced.record_id, 0)
            if count != 1:
                code = "counted_twice" if count else "not_counted"
                self._find(code, application, place, f"record {produced.record_id} was counted {count} times", None)

    def _ended_as(self, produced: _Produced, outcome: str) -> bool:
        return produced.transaction is not None and self._outcomes.get(produced.transaction) == outcome

    def _find(self, code: str, group: str | None, place: _Place, why: str, line: int | None) -> None:
        self.findings.append(Finding(code=code, where=place_name(group, *place), why=why, line=line))


def _may_be_older(delivery: Entry, ended: _Ended) -> bool:
    """Whether a delivery may have been acquired before the record's end was confirmed.

    A client's library may buffer a fetched record between two polls: `since_ms` is its earliest fetch.
    """
    return bool(delivery["since_ms"] <= ended.at_ms and delivery["delivery_count"] <= ended.delivery_count)
