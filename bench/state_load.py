"""State records at a rate: share partitions whose state moves on, written through the share coordinator's own requests.

python -m bench.state_load BOOTSTRAP --rate N --seconds S makes a topic and a group, and writes N records a second to
`__share_group_state`. It prints a JSON line: how many records, and in how many seconds.
"""

import argparse
import json
import math
import time
import uuid
from collections.abc import Sequence
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from bench.connection import TIMEOUT_S, Connection
from sharelens.kafka_formats.messages.api_keys import ApiKey
from sharelens.workloads.wire import ask

PARTITIONS = 50
REQUEST_RECORDS = 25
WINDOW = 40
"""Offsets between the start offset and the highest one of a written state."""
VERSION = 0
ACQUIRED_ONCE, ACKNOWLEDGED, AVAILABLE = 1, 2, 0


class Coordinator(Connection):
    """A connection to a broker that takes WriteShareGroupState."""

    def write(self, group: str, topic_id: uuid.UUID, starts: dict[int, int]) -> None:
        """Writes a state for each partition, which begins at the given offset. Raises ValueError for a refusal."""
        partitions = [_state(partition, start) for partition, start in starts.items()]
        body = {"group_id": group, "topics": ({"topic_id": topic_id, "partitions": tuple(partitions)},)}
        _ensure_done(self.ask(ApiKey.WRITE_SHARE_GROUP_STATE, VERSION, body))


def _state(partition: int, start: int) -> dict[str, Any]:
    """A share partition at an offset: some records acknowledged out of order, one waiting for its second delivery."""
    batches = [
        (start, start, AVAILABLE, 1),
        (start + 1, start + WINDOW // 2, ACKNOWLEDGED, 1),
        (start + WINDOW // 2 + 1, start + WINDOW, AVAILABLE, 1),
    ]
    names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
    return {
        "partition": partition,
        "state_epoch": 0,
        "leader_epoch": 0,
        "start_offset": start,
        "state_batches": tuple(dict(zip(names, batch, strict=True)) for batch in batches),
    }


def _ensure_done(answer: Any) -> None:
    for topic in answer.results:
        for partition in topic.partitions:
            if partition.error_code:
                raise ValueError(f"partition {partition.partition}: {partition.error_message}")


def prepare(bootstrap: str, group: str, partitions: int) -> uuid.UUID:
    """Makes a topic, and initializes the states of a group over it; the topic's id."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(group, partitions, 1)])[group].result(TIMEOUT_S)
    topic_id: uuid.UUID = ask(bootstrap, ApiKey.METADATA, 12, {"topics": [{"name": group}]}).topics[0].topic_id
    states = tuple({"partition": number, "state_epoch": 0, "start_offset": 0} for number in range(partitions))
    body = {"group_id": group, "topics": ({"topic_id": topic_id, "partitions": states},)}
    _ensure_done(ask(bootstrap, ApiKey.INITIALIZE_SHARE_GROUP_STATE, VERSION, body))
    return topic_id


def load(bootstrap: str, rate: float, seconds: float, partitions: int = PARTITIONS) -> int:
    """Writes `rate` records a second, REQUEST_RECORDS a request; how many. A slow broker makes it later, not less."""
    return write(bootstrap, round(rate * seconds / REQUEST_RECORDS), rate, partitions)


def write(bootstrap: str, requests: int, rate: float = math.inf, partitions: int = PARTITIONS) -> int:
    """Writes the records of so many requests, at most `rate` a second, of a new group over a new topic; how many."""
    group = f"load-{uuid.uuid4().hex[:8]}"
    topic_id = prepare(bootstrap, group, partitions)
    begun_s = time.monotonic()
    with Coordinator(bootstrap) as coordinator:
        for number in range(requests):
            time.sleep(max(0.0, begun_s + number * REQUEST_RECORDS / rate - time.monotonic()))
            first = number * REQUEST_RECORDS
            places = range(first, first + REQUEST_RECORDS)
            coordinator.write(
                group, topic_id, {place % partitions: WINDOW * (1 + place // partitions) for place in places}
            )
    return requests * REQUEST_RECORDS


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the load."""
    parser = argparse.ArgumentParser(prog="python -m bench.state_load", description=__doc__)
    parser.add_argument("bootstrap")
    parser.add_argument("--rate", type=float, default=1000.0)
    parser.add_argument("--seconds", type=float, default=30.0)
    options = parser.parse_args(arguments)
    begun_s = time.monotonic()
    count = load(options.bootstrap, options.rate, options.seconds)
    print(json.dumps({"records": count, "seconds": round(time.monotonic() - begun_s, 3)}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
