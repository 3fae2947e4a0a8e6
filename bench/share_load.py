"""A share group's work from end to end, as one client process: produce, acquire, accept in batches.

python -m bench.share_load BOOTSTRAP RECORDS prints a JSON line: for each size of the producer's batches, the records
per second of each round.
"""

import json
import sys
import threading
import time
import uuid
from collections.abc import Sequence

from confluent_kafka import Producer, ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

ROUNDS = 3
WARM_UP = 100_000
BATCHES = (10_000, 100)
"""Most records in a batch of the producer: librdkafka's default, and a small one that makes brokers work."""
PARTITIONS = 4
VALUE = b"v" * 100
TIMEOUT_S = 60.0
POLL_S = 0.5
QUEUE_MAX = 1_000_000


def prepare(bootstrap: str, topic: str, group: str) -> None:
    """Make the topic; let the group begin with its first record."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(TIMEOUT_S)
    earliest = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[earliest])
    admin.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)


def produce(bootstrap: str, topic: str, records: int, batch: int) -> None:
    """Produce records and wait until all are confirmed."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 5,
            "batch.num.messages": batch,
            "queue.buffering.max.messages": QUEUE_MAX,
        }
    )
    for number in range(records):
        producer.produce(topic, VALUE, partition=number % PARTITIONS)
        if number % 1000 == 0:
            producer.poll(0)
    if producer.flush(TIMEOUT_S):
        raise TimeoutError("not all records were confirmed")


def consume(consumer: ShareConsumer, records: int) -> None:
    """Poll until that many records came; each poll accepts what the one before brought, the end accepts the rest."""
    remaining_records, deadline_s = records, time.monotonic() + TIMEOUT_S
    while remaining_records > 0:
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"{remaining_records} of {records} records did not come")
        remaining_records -= sum(message.error() is None for message in consumer.poll(POLL_S))
    consumer.commit_sync(TIMEOUT_S)


def round_s(bootstrap: str, consumer: ShareConsumer, topic: str, records: int, batch: int) -> float:
    """Seconds from the first record produced to the last one accepted; the two run at once."""
    begun_s = time.perf_counter()
    producing = threading.Thread(target=produce, args=(bootstrap, topic, records, batch))
    producing.start()
    consume(consumer, records)
    producing.join()
    return time.perf_counter() - begun_s


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a warm-up and the rounds."""
    bootstrap, count = sys.argv[1:] if arguments is None else arguments
    records = int(count)
    topic, group = f"bench-{uuid.uuid4().hex[:8]}", f"g-{uuid.uuid4().hex[:8]}"
    prepare(bootstrap, topic, group)
    consumer = ShareConsumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        consumer.subscribe([topic])
        rates = {}
        for batch in BATCHES:
            round_s(bootstrap, consumer, topic, WARM_UP, batch)
            rates[batch] = [records / round_s(bootstrap, consumer, topic, records, batch) for _ in range(ROUNDS)]
    finally:
        consumer.close()
    print(json.dumps(rates))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
