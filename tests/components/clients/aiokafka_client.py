"""aiokafka against a broker: runs the plan that its argument is, and prints what it saw as one JSON object.

Every client's program does the same; `tests/components/test_other_clients.py` has the plan and what is expected.
"""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

TIMEOUT_S = 60
Plan = Mapping[str, Any]


async def configurations(admin: AIOKafkaAdminClient, plan: Plan) -> dict[str, str]:
    """Values of the topic's configurations that the plan has."""
    names = dict.fromkeys(plan["configurations"]["created"])
    resource = ConfigResource(ConfigResourceType.TOPIC, plan["topic"], configs=names)
    (response,) = await admin.describe_configs([resource])
    (_, _, _, _, entries) = response.resources[0]
    return {entry[0]: entry[1] for entry in entries}


async def partition_count(admin: AIOKafkaAdminClient, topic: str) -> int:
    """The number of a topic's partitions."""
    (description,) = await admin.describe_topics([topic])
    return len(description["partitions"])


async def administer_topics(admin: AIOKafkaAdminClient, plan: Plan) -> dict[str, Any]:
    """Creates a topic twice, grows it and replaces its configurations."""
    topic = plan["topic"]
    new_topics = [NewTopic(topic, plan["partitions"], 1, topic_configs=plan["configurations"]["created"])]
    created, refused = await admin.create_topics(new_topics), await admin.create_topics(new_topics)
    await admin.create_topics([NewTopic(plan["records_topic"], 1, 1)])
    facts = {
        "first_create_error": created.topic_errors[0][1],
        "second_create_error": refused.topic_errors[0][1],
        "is_listed": topic in await admin.list_topics(),
        "partitions": await partition_count(admin, topic),
        "created_configurations": await configurations(admin, plan),
    }
    await admin.create_partitions({topic: NewPartitions(total_count=plan["grown_partitions"])})
    replaced = ConfigResource(ConfigResourceType.TOPIC, topic, configs=plan["configurations"]["replaced"])
    await admin.alter_configs([replaced])
    return facts | {
        "grown_partitions": await partition_count(admin, topic),
        "replaced_configurations": await configurations(admin, plan),
    }


async def send(producer: AIOKafkaProducer, plan: Plan, label: str) -> int:
    """Sends the values of a label; the offset of the first of them."""
    name, text = plan["header"]
    waiting = [
        await producer.send(
            plan["records_topic"],
            value.encode(),
            key=f"key of {value}".encode(),
            partition=0,
            headers=[(name, text.encode())],
        )
        for value in plan["values"][label]
    ]
    return min([(await each).offset for each in waiting])


async def send_with(plan: Plan, label: str, **options: Any) -> int:
    """Sends the values of a label by a producer of its own; the offset of the first of them."""
    async with AIOKafkaProducer(bootstrap_servers=plan["bootstrap"], acks="all", **options) as producer:
        return await send(producer, plan, label)


async def send_transactions(plan: Plan) -> dict[str, int]:
    """A transaction that commits, with an offset of a group, and one that aborts; the first offset of each."""
    source = TopicPartition(plan["records_topic"], 0)
    offsets = {}
    async with AIOKafkaProducer(
        bootstrap_servers=plan["bootstrap"], transactional_id=plan["transactional_id"]
    ) as producer:
        for label, end in (("committed", producer.commit_transaction), ("aborted", producer.abort_transaction)):
            await producer.begin_transaction()
            offsets[label] = await send(producer, plan, label)
            source_offset = plan["transactional_offsets"][label]
            await producer.send_offsets_to_transaction({source: source_offset}, plan["transactional_group"])
            await end()
    return offsets


async def produce(plan: Plan) -> dict[str, int]:
    """Sends everything that the plan has; the first offset of each label."""
    offsets = {}
    for codec in plan["codecs"]:
        compression = None if codec == "none" else codec
        offsets[codec] = await send_with(plan, codec, compression_type=compression, enable_idempotence=False)
    offsets["idempotent"] = await send_with(plan, "idempotent", enable_idempotence=True)
    offsets |= await send_transactions(plan)
    return offsets | {"last": await send_with(plan, "last")}


async def records_until_last(consumer: AIOKafkaConsumer, plan: Plan) -> Sequence[Any]:
    """The records until the last one of the plan."""
    records: list[Any] = []
    while not records or records[-1].value.decode() not in plan["values"]["last"]:
        for batch in (await consumer.getmany(timeout_ms=500)).values():
            records += batch
    return records


async def consume(admin: AIOKafkaAdminClient, plan: Plan) -> dict[str, Any]:
    """Reads all with a member of a group, which commits, and once more without a group and without isolation."""
    place = TopicPartition(plan["records_topic"], 0)
    options = {"bootstrap_servers": plan["bootstrap"], "enable_auto_commit": False, "auto_offset_reset": "earliest"}
    async with AIOKafkaConsumer(
        plan["records_topic"], group_id=plan["group"], isolation_level="read_committed", **options
    ) as member:
        records = await records_until_last(member, plan)
        await member.commit()
        (description,) = await admin.describe_consumer_groups([plan["group"]])
        (group,) = description.groups
    consumer = AIOKafkaConsumer(isolation_level="read_uncommitted", **options)
    consumer.assign([place])
    async with consumer:
        uncommitted = await records_until_last(consumer, plan)
        (end_offset,) = (await consumer.end_offsets([place])).values()
    first = records[0]
    return {
        "first_record": [
            first.offset,
            first.key.decode(),
            first.value.decode(),
            [[name, text.decode()] for name, text in first.headers],
        ],
        "read_committed": [record.value.decode() for record in records],
        "read_uncommitted": [record.value.decode() for record in uncommitted],
        "end_offset": end_offset,
        "group_state": group[2],
        "group_members": len(group[5]),
        "committed_offset": (await admin.list_consumer_group_offsets(plan["group"]))[place].offset,
        "transactional_offset": (await admin.list_consumer_group_offsets(plan["transactional_group"]))[place].offset,
        "is_group_listed": plan["group"] in [name for name, *_ in await admin.list_consumer_groups()],
    }


async def delete(admin: AIOKafkaAdminClient, plan: Plan) -> dict[str, Any]:
    """Deletes records and a topic. aiokafka deletes no groups."""
    place = TopicPartition(plan["records_topic"], 0)
    low_watermarks = await admin.delete_records({place: RecordsToDelete(before_offset=plan["delete_before"])})
    consumer = AIOKafkaConsumer(bootstrap_servers=plan["bootstrap"])
    async with consumer:
        (start_offset,) = (await consumer.beginning_offsets([place])).values()
    await admin.delete_topics([plan["topic"]])
    return {
        "low_watermark": low_watermarks[place],
        "start_offset": start_offset,
        "is_listed_after_deletion": plan["topic"] in await admin.list_topics(),
    }


async def run(plan: Plan) -> dict[str, Any]:
    """All facts."""
    admin = AIOKafkaAdminClient(bootstrap_servers=plan["bootstrap"])
    await admin.start()
    try:
        facts = await administer_topics(admin, plan)
        facts["first_offsets"] = await produce(plan)
        facts |= await consume(admin, plan)
        return facts | await delete(admin, plan)
    finally:
        await admin.close()


if __name__ == "__main__":
    facts = asyncio.run(asyncio.wait_for(run(json.loads(sys.argv[1])), TIMEOUT_S))
    sys.stdout.write(json.dumps(facts))
