// kafkajs against a broker: runs the plan that its argument is, and prints what it saw as one JSON object.
// NODE_PATH names the folder of its package.
'use strict'

const { CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = require('kafkajs')

const plan = JSON.parse(process.argv[2])
const kafka = new Kafka({ clientId: 'kafkajs', brokers: [plan.bootstrap], logLevel: logLevel.NOTHING, retry: { retries: 3 } })
const CODECS = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP }

const entries = (configurations) => Object.entries(configurations).map(([name, value]) => ({ name, value }))

async function configurations(admin) {
  const configNames = Object.keys(plan.configurations.created)
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: [{ type: ConfigResourceTypes.TOPIC, name: plan.topic, configNames }],
  })
  return Object.fromEntries(resources[0].configEntries.map((entry) => [entry.configName, entry.configValue]))
}

async function partitionCount(admin) {
  const { topics } = await admin.fetchTopicMetadata({ topics: [plan.topic] })
  return topics[0].partitions.length
}

async function administerTopics(admin) {
  const topics = [
    { topic: plan.topic, numPartitions: plan.partitions, configEntries: entries(plan.configurations.created) },
  ]
  // createTopics has no code for its caller: it is true, or false where TOPIC_ALREADY_EXISTS is the only error.
  const codes = { true: 0, false: 36 }
  const facts = {
    first_create_error: codes[await admin.createTopics({ topics })],
    second_create_error: codes[await admin.createTopics({ topics })],
    is_listed: (await admin.listTopics()).includes(plan.topic),
    partitions: await partitionCount(admin),
    created_configurations: await configurations(admin),
  }
  await admin.createTopics({ topics: [{ topic: plan.records_topic, numPartitions: 1 }] })
  await admin.createPartitions({ topicPartitions: [{ topic: plan.topic, count: plan.grown_partitions }] })
  await admin.alterConfigs({
    validateOnly: false,
    resources: [
      { type: ConfigResourceTypes.TOPIC, name: plan.topic, configEntries: entries(plan.configurations.replaced) },
    ],
  })
  return {
    ...facts,
    grown_partitions: await partitionCount(admin),
    replaced_configurations: await configurations(admin),
  }
}

async function send(sender, label, compression = CompressionTypes.None) {
  const [header, text] = plan.header
  const messages = plan.values[label].map((value) => ({
    key: `key of ${value}`,
    value,
    partition: 0,
    headers: { [header]: text },
  }))
  const [metadata] = await sender.send({ topic: plan.records_topic, acks: -1, compression, messages })
  return Number(metadata.baseOffset)
}

async function sendWith(options, label, compression) {
  const producer = kafka.producer(options)
  await producer.connect()
  try {
    return await send(producer, label, compression)
  } finally {
    await producer.disconnect()
  }
}

async function sendTransactions() {
  const producer = kafka.producer({
    transactionalId: plan.transactional_id,
    idempotent: true,
    maxInFlightRequests: 1,
  })
  await producer.connect()
  const offsets = {}
  for (const label of ['committed', 'aborted']) {
    const transaction = await producer.transaction()
    offsets[label] = await send(transaction, label)
    const offset = String(plan.transactional_offsets[label])
    await transaction.sendOffsets({
      consumerGroupId: plan.transactional_group,
      topics: [{ topic: plan.records_topic, partitions: [{ partition: 0, offset }] }],
    })
    await (label === 'committed' ? transaction.commit() : transaction.abort())
  }
  await producer.disconnect()
  return offsets
}

async function produce() {
  const offsets = {}
  for (const codec of plan.codecs) offsets[codec] = await sendWith({}, codec, CODECS[codec])
  offsets.idempotent = await sendWith({ idempotent: true, maxInFlightRequests: 1 }, 'idempotent')
  Object.assign(offsets, await sendTransactions())
  offsets.last = await sendWith({}, 'last')
  return offsets
}

// Reads the topic to the last value of the plan; `atEnd` runs while the consumer is still a member.
async function read(groupId, readUncommitted, atEnd) {
  const consumer = kafka.consumer({ groupId, readUncommitted, maxWaitTimeInMs: 200 })
  await consumer.connect()
  await consumer.subscribe({ topics: [plan.records_topic], fromBeginning: true })
  const messages = []
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error))
    const eachMessage = async ({ message }) => {
      messages.push(message)
      if (plan.values.last.includes(String(message.value))) resolve()
    }
    consumer.run({ autoCommit: false, eachMessage }).catch(reject)
  })
  await atEnd(consumer, messages)
  await consumer.disconnect()
  return messages
}

async function offsetOfGroup(admin, groupId) {
  const [{ partitions }] = await admin.fetchOffsets({ groupId, topics: [plan.records_topic] })
  return Number(partitions[0].offset)
}

async function consume(admin) {
  let group
  const records = await read(plan.group, false, async (member, messages) => {
    const offset = String(Number(messages.at(-1).offset) + 1)
    await member.commitOffsets([{ topic: plan.records_topic, partition: 0, offset }])
    group = (await admin.describeGroups([plan.group])).groups[0]
  })
  const uncommitted = await read(`${plan.group}-uncommitted`, true, async () => {})
  const [{ high }] = await admin.fetchTopicOffsets(plan.records_topic)
  const first = records[0]
  const headers = Object.entries(first.headers).map(([name, value]) => [name, String(value)])
  return {
    first_record: [Number(first.offset), String(first.key), String(first.value), headers],
    read_committed: records.map(({ value }) => String(value)),
    read_uncommitted: uncommitted.map(({ value }) => String(value)),
    end_offset: Number(high),
    group_state: group.state,
    group_members: group.members.length,
    committed_offset: await offsetOfGroup(admin, plan.group),
    transactional_offset: await offsetOfGroup(admin, plan.transactional_group),
    is_group_listed: await isGroupListed(admin),
  }
}

async function isGroupListed(admin) {
  return (await admin.listGroups()).groups.some(({ groupId }) => groupId === plan.group)
}

async function deleteAll(admin) {
  const partitions = [{ partition: 0, offset: String(plan.delete_before) }]
  await admin.deleteTopicRecords({ topic: plan.records_topic, partitions })
  const [{ low }] = await admin.fetchTopicOffsets(plan.records_topic)
  await admin.deleteGroups([plan.group])
  await admin.deleteTopics({ topics: [plan.topic] })
  return {
    start_offset: Number(low),
    is_group_listed_after_deletion: await isGroupListed(admin),
    is_listed_after_deletion: (await admin.listTopics()).includes(plan.topic),
  }
}

async function main() {
  const admin = kafka.admin()
  await admin.connect()
  const facts = await administerTopics(admin)
  facts.first_offsets = await produce()
  Object.assign(facts, await consume(admin), await deleteAll(admin))
  await admin.disconnect()
  process.stdout.write(JSON.stringify(facts))
}

main().catch((error) => {
  console.error(error)
  process.exit(1)
})
