"""Checkpoints of a run: the share coordinator's answers for the groups' share partitions, with the state log's offsets.

An answer is valid when the end of its state partition was the same before and after the request: then it is the state
after exactly the records below that end, independent of other state partitions. The requests append no record: a Read
appends only for a leader epoch above the maximum (share-group-state-log §5), which we never send.
"""

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from sharelens.broker.checkpoint_lines import checkpoint_line, state_entry
from sharelens.broker.protocol.messages import state_batches_of, topic_id_text
from sharelens.kafka_formats.messages.api_keys import ApiKey
from sharelens.workloads.journal import new_file
from sharelens.workloads.wire import UnreachableError, ask
from state_model.answers import ErrorCode, ReadAnswer, SummaryAnswer
from state_model.java import partition_for
from state_model.machine import NO_EPOCH
from state_model.share_records import SharePartitionKey
from state_model.topics import STATE_TOPIC

INTERVAL_S: Final = 0.5
BUSY_S: Final = 0.5
"""Timeout of one checkpoint under load."""
QUIET_S: Final = 60.0
"""Timeout of the checkpoint after all members left: locks that time out still write, and a broker may start again."""
RETRY_S: Final = 0.05
TIMEOUT_S: Final = 5.0
EPOCHS_MAX: Final = 1_000
LATEST, EARLIEST = -1, -2
_NOT_INITIALIZED: Final = ErrorCode.INVALID_REQUEST

Offsets = Mapping[int, int]
"""Offsets by state partition."""
_Answers = Mapping[SharePartitionKey, tuple[ReadAnswer, SummaryAnswer]]


class Checkpoints:
    """Writes checkpoints to a new file, a line each. `taken` is their number. Not safe for concurrent calls."""

    def __init__(self, path: Path, bootstrap: str, topic: str, groups: Sequence[str]) -> None:
        """Create the file. Raises JournalError when it exists."""
        self._file = new_file(path)
        self._coordinator = _Coordinator(bootstrap)
        self._topic, self._groups = topic, tuple(groups)
        self.taken_count = 0

    def take(self, name: str, patience_s: float) -> None:
        """Write a checkpoint of the state partitions whose end does not change meanwhile; none when all change."""
        deadline_s = time.monotonic() + patience_s
        ends: dict[int, int] = {}
        answers: dict[SharePartitionKey, tuple[ReadAnswer, SummaryAnswer]] = {}
        is_whole = False
        while not is_whole and time.monotonic() <= deadline_s:
            with suppress(UnreachableError):
                is_whole = self._add_unchanged(ends, answers)
            if not is_whole:
                time.sleep(RETRY_S)
        while ends:
            with suppress(UnreachableError):
                self._write(name, ends, answers)
                return
            if time.monotonic() > deadline_s:
                return
            time.sleep(RETRY_S)

    def _add_unchanged(self, ends: dict[int, int], answers: dict[SharePartitionKey, tuple[Any, Any]]) -> bool:
        """Add answers of unchanged state partitions; whether the checkpoint is complete. Raises UnreachableError."""
        indexes = self._coordinator.share_partitions(self._topic, self._groups)
        missing = {key: index for key, index in indexes.items() if index not in ends}
        before = self._coordinator.offsets(set(missing.values()), LATEST)
        state = self._coordinator.answers(missing)
        after = self._coordinator.offsets(set(missing.values()), LATEST)
        for index in set(missing.values()):
            keys = [key for key, its in missing.items() if its == index]
            if index in before and before[index] == after.get(index) and all(key in state for key in keys):
                ends[index] = before[index]
                answers.update({key: state[key] for key in keys})
        return bool(indexes) and all(index in ends for index in indexes.values())

    def _write(self, name: str, ends: Offsets, answers: _Answers) -> None:
        """Raises UnreachableError, and then writes nothing."""
        starts = self._coordinator.offsets(set(ends), EARLIEST)
        line = checkpoint_line(
            self.taken_count,
            name,
            int(time.time() * 1000),
            ends=dict(sorted(ends.items())),
            starts=dict(sorted(starts.items())),
            states=[state_entry(key, self._topic, *answers[key]) for key in sorted(answers)],
        )
        self._file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
        self._file.flush()
        self.taken_count += 1

    @contextmanager
    def during(self, name: str) -> Iterator[None]:
        """Write checkpoints in a thread; after the block one more, unless it failed."""
        is_over = threading.Event()

        def run() -> None:
            while not is_over.wait(INTERVAL_S):
                self.take(f"during {name}", BUSY_S)

        thread = threading.Thread(target=run, name="checkpoints", daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()
        self.take(f"after {name}", QUIET_S)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class _Coordinator:
    """A client of the share coordinator. Every method raises UnreachableError."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def share_partitions(self, topic: str, groups: Sequence[str]) -> Mapping[SharePartitionKey, int]:
        """The share partitions of the groups on a topic, with their state partitions; none without a state topic."""
        body = {"topics": [{"name": name} for name in (topic, STATE_TOPIC)], "allow_auto_topic_creation": False}
        read, state = self._ask(ApiKey.METADATA, 12, body).topics
        topic_id = topic_id_text(read.topic_id)
        if topic_id is None or not state.partitions:
            return {}
        keys = [
            SharePartitionKey(group_id=group, topic_id=topic_id, partition=number)
            for group in groups
            for number in range(len(read.partitions))
        ]
        return {key: partition_for(*key, len(state.partitions)) for key in keys}

    def offsets(self, indexes: set[int], timestamp: int) -> Offsets:
        """The LATEST or EARLIEST offsets of state partitions; without those that have an error."""
        partitions = [{"partition_index": index, "timestamp": timestamp} for index in sorted(indexes)]
        if not partitions:
            return {}
        body = {"replica_id": -1, "topics": [{"name": STATE_TOPIC, "partitions": partitions}]}
        (topic,) = self._ask(ApiKey.LIST_OFFSETS, 7, body).topics
        return {each.partition_index: each.offset for each in topic.partitions if not int(each.error_code)}

    def answers(self, keys: Mapping[SharePartitionKey, int]) -> _Answers:
        """The answers to Read and ReadSummary; without those with an error other than "uninitialized"."""
        answers: dict[SharePartitionKey, tuple[ReadAnswer, SummaryAnswer]] = {}
        for group in dict.fromkeys(key.group_id for key in keys):
            its = [key for key in keys if key.group_id == group]
            summaries = self._summaries(its)
            reads = self._reads(summaries)
            answers.update({key: (read, summaries[key]) for key, read in reads.items()})
        return answers

    def _summaries(self, keys: Sequence[SharePartitionKey]) -> Mapping[SharePartitionKey, SummaryAnswer]:
        parts = self._each(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 1, dict.fromkeys(keys, 0))
        return {
            key: SummaryAnswer(
                state_epoch=summary.state_epoch,
                leader_epoch=summary.leader_epoch,
                start_offset=summary.start_offset,
                delivery_complete_count=summary.delivery_complete_count,
            )
            for key, summary in parts.items()
            if not int(summary.error_code)
        }

    def _reads(self, summaries: Mapping[SharePartitionKey, SummaryAnswer]) -> Mapping[SharePartitionKey, ReadAnswer]:
        """4.3 answers a Read with leader epoch -1; in other versions the lowest unfenced epoch is the current one."""
        answers: dict[SharePartitionKey, ReadAnswer] = {}
        epochs = dict.fromkeys(summaries, NO_EPOCH)
        for _ in range(EPOCHS_MAX):
            again: dict[SharePartitionKey, int] = {}
            for key, result in self._each(ApiKey.READ_SHARE_GROUP_STATE, 0, epochs).items():
                code, epoch = int(result.error_code), epochs[key]
                if epoch == NO_EPOCH and code in (ErrorCode.INVALID_REQUEST, ErrorCode.FENCED_LEADER_EPOCH):
                    again[key] = max(0, summaries[key].leader_epoch)
                elif code == ErrorCode.FENCED_LEADER_EPOCH:
                    again[key] = epoch + 1
                elif code in (ErrorCode.NONE, _NOT_INITIALIZED):
                    answers[key] = _read_answer(result)
            if not again:
                break
            epochs = again
        return answers

    def _each(self, api_key: ApiKey, version: int, epochs: Mapping[SharePartitionKey, int]) -> dict[Any, Any]:
        """The partitions of an answer for share partitions of one group and topic."""
        if not epochs:
            return {}
        first = next(iter(epochs))
        partitions = [{"partition": key.partition, "leader_epoch": epoch} for key, epoch in epochs.items()]
        body = {"group_id": first.group_id, "topics": [{"topic_id": first.topic_id, "partitions": partitions}]}
        results = self._ask(api_key, version, body).results
        return {first._replace(partition=each.partition): each for topic in results for each in topic.partitions}

    def _ask(self, api_key: ApiKey, version: int, body: Mapping[str, Any]) -> Any:
        return ask(self._bootstrap, api_key, version, body, timeout_s=TIMEOUT_S)


def _read_answer(result: Any) -> ReadAnswer:
    return ReadAnswer(
        error_code=ErrorCode(int(result.error_code)),
        state_epoch=result.state_epoch,
        start_offset=result.start_offset,
        state_batches=state_batches_of(result.state_batches),
    )
