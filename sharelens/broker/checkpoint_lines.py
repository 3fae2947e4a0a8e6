"""A line of `checkpoints.jsonl`: what a share coordinator answers at one moment, in the format of the recorded logs."""

from collections.abc import Iterable, Mapping
from typing import Any

from state_model.answers import ReadAnswer, SummaryAnswer
from state_model.share_records import SharePartitionKey


def checkpoint_line(
    number: int,
    name: str,
    wall_ms: int,
    *,
    ends: Mapping[int, int],
    starts: Mapping[int, int],
    states: Iterable[Mapping[str, Any]],
    **extra_fields: Any,
) -> dict[str, Any]:
    """One checkpoint as a JSON document. `ends` and `starts`: of the state partitions, ends exclusive."""
    return {
        "checkpoint": number,
        "name": name,
        "wallMs": wall_ms,
        "logEndOffsets": {str(index): offset for index, offset in ends.items()},
        "logStartOffsets": {str(index): offset for index, offset in starts.items()},
        **extra_fields,
        "states": list(states),
    }


def state_entry(
    key: SharePartitionKey, topic_name: str | None, read: ReadAnswer, summary: SummaryAnswer
) -> dict[str, Any]:
    """One share partition: the answers to Read and ReadSummary. `topic_name` None: the topic is gone."""
    return {
        "group": key.group_id,
        "topic": topic_name,
        "topicId": key.topic_id,
        "partition": key.partition,
        "read": {
            "partition": key.partition,
            "errorCode": int(read.error_code),
            "errorMessage": None,
            "stateEpoch": read.state_epoch,
            "startOffset": read.start_offset,
            "stateBatches": [
                {
                    "firstOffset": batch.first_offset,
                    "lastOffset": batch.last_offset,
                    "deliveryState": int(batch.delivery_state),
                    "deliveryCount": batch.delivery_count,
                }
                for batch in read.state_batches
            ],
        },
        "summary": {
            "partition": key.partition,
            "errorCode": int(summary.error_code),
            "errorMessage": None,
            "stateEpoch": summary.state_epoch,
            "leaderEpoch": summary.leader_epoch,
            "startOffset": summary.start_offset,
            "deliveryCompleteCount": summary.delivery_complete_count,
        },
    }
