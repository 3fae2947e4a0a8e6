// @platformatic/kafka against a broker: runs the plan that its argument is, and prints what it saw as one JSON object.
// NODE_PATH names the folder of its package, which `import` alone does not look at.
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const packages = createRequire(join(process.env.NODE_PATH, 'package.json'))
const {
  Admin,
  ConfigResourceTypes,
  Consumer,
  FetchIsolationLevels,
  IncrementalAlterConfigOperationTypes,
  ListOffsetTimestamps,
  MessagesStreamModes,
  Producer,
  stringDeserializers,
  stringSerializers,
} = await import(pathToFileURL(packages.resolve('@platformatic/kafka')))

const plan = JSON.parse(process.argv[2])
const options = { clientId: 'platformatic', bootstrapBrokers: [plan.bootstrap] }
const admin = new Admin(options)

const entries = (configurations) => Object.entries(configurations).map(([name, value]) => ({ name, value }))
const resource = { resourceType: ConfigResourceTypes.TOPIC, resourceName: plan.topic }

async function configurations() {
  const configurationKeys = Object.keys(plan.configurations.created)
  const [description] = await admin.describeConfigs({ resources: [{ ...resource, configurationKeys }] })
  return Object.fromEntries(description.configs.map(({ name, value }) => [name, value]))
}

async function partitionCount() {
  const { topics } = await admin.metadata({ topics: [plan.topic], forceUpdate: true })
  return topics.get(plan.topic).partitionsCount
}

// The protocol's code of the error that a call fails with; 0 where it has none.
async function errorCode(call) {
  try {
    await call
    return 0
  } catch (error) {
    const codes = [error, ...(error.errors ?? [])].map(({ apiCode }) => apiCode).filter((code) => code !== undefined)
    if (codes.length === 0) throw error
    return codes[0]
  }
}

const isListed = async () => (await admin.listTopics()).includes(plan.topic)
const isGroupListed = async () => (await admin.listGroups({ types: ['classic'] })).has(plan.group)

async function administerTopics() {
  const topic = { topics: [plan.topic], partitions: plan.partitions, replicas: 1 }
  topic.configs = entries(plan.configurations.created)
  const facts = {
    first_create_error: await errorCode(admin.createTopics(topic)),
    second_create_error: await errorCode(admin.createTopics(topic)),
    is_listed: await isListed(),
    partitions: await partitionCount(),
    created_configurations: await configurations(),
  }
  await admin.createTopics({ topics: [plan.records_topic], partitions: 1, replicas: 1 })
  await admin.createPartitions({
    topics: [{ name: plan.topic, count: plan.grown_partitions }],
    validateOnly: false,
  })
  const changes = entries(plan.configurations.incremental).map((entry) => ({
    ...entry,
    configOperation: IncrementalAlterConfigOperationTypes.SET,
  }))
  await admin.incrementalAlterConfigs({ resources: [{ ...resource, configs: changes }], validateOnly: false })
  facts.incremental_configurations = await configurations()
  await admin.alterConfigs({
    resources: [{ ...resource, configs: entries(plan.configurations.replaced) }],
    validateOnly: false,
  })
  facts.grown_partitions = await partitionCount()
  facts.replaced_configurations = await configurations()
  return facts
}

async function send(sender, label) {
  const [header, text] = plan.header
  const messages = plan.values[label].map((value) => ({
    topic: plan.records_topic,
    partition: 0,
    key: `key of ${value}`,
    value,
    headers: { [header]: text },
  }))
  const { offsets } = await sender.send({ messages, acks: -1 })
  return Number(offsets[0].offset)
}

async function sendWith(label, choices = {}) {
  const producer = new Producer({ ...options, serializers: stringSerializers, ...choices })
  try {
    return await send(producer, label)
  } finally {
    await producer.close()
  }
}

// A consumer of the records' topic and the messages that it reads until `isEnough` of them.
async function read(groupId, isolationLevel, isEnough) {
  const consumer = new Consumer({ ...options, groupId, deserializers: stringDeserializers, maxWaitTime: 200 })
  const stream = await consumer.consume({
    topics: [plan.records_topic],
    mode: MessagesStreamModes.EARLIEST,
    autocommit: false,
    isolationLevel,
  })
  const messages = []
  await new Promise((resolve, reject) => {
    stream.on('error', reject)
    stream.on('data', (message) => {
      messages.push(message)
      if (isEnough(message)) resolve()
    })
  })
  return { consumer, messages }
}

// The offset that a transaction commits for a group is the one behind a message that its consumer read.
async function sendTransactions() {
  const furthest = BigInt(Math.max(...Object.values(plan.transactional_offsets)) - 1)
  const { consumer, messages } = await read(
    plan.transactional_group,
    FetchIsolationLevels.READ_COMMITTED,
    ({ offset }) => offset === furthest
  )
  const producer = new Producer({
    ...options,
    serializers: stringSerializers,
    idempotent: true,
    transactionalId: plan.transactional_id,
  })
  const offsets = {}
  for (const label of ['committed', 'aborted']) {
    const transaction = await producer.beginTransaction()
    offsets[label] = await send(transaction, label)
    await transaction.addConsumer(consumer)
    await transaction.addOffset(messages[plan.transactional_offsets[label] - 1])
    await (label === 'committed' ? transaction.commit() : transaction.abort())
  }
  await producer.close()
  await consumer.close(true)
  return offsets
}

async function produce() {
  const offsets = {}
  for (const codec of plan.codecs) offsets[codec] = await sendWith(codec, { compression: codec })
  offsets.idempotent = await sendWith('idempotent', { idempotent: true })
  Object.assign(offsets, await sendTransactions())
  offsets.last = await sendWith('last')
  return offsets
}

async function offsetOfGroup(groupId) {
  const topics = [{ name: plan.records_topic, partitionIndexes: [0] }]
  const [group] = await admin.listConsumerGroupOffsets({ groups: [{ groupId, topics }] })
  return Number(group.topics[0].partitions[0].committedOffset)
}

async function offsetAt(timestamp) {
  const topics = [{ name: plan.records_topic, partitions: [{ partitionIndex: 0, timestamp }] }]
  const [topic] = await admin.listOffsets({ topics })
  return Number(topic.partitions[0].offset)
}

async function consume() {
  const isLast = ({ value }) => plan.values.last.includes(value)
  const { consumer, messages } = await read(plan.group, FetchIsolationLevels.READ_COMMITTED, isLast)
  const { topic, partition, offset } = messages.at(-1)
  await consumer.commit({ offsets: [{ topic, partition, offset: offset + 1n, leaderEpoch: -1 }] })
  const group = (await admin.describeGroups({ groups: [plan.group] })).get(plan.group)
  await consumer.close(true)
  const uncommitted = await read(`${plan.group}-uncommitted`, FetchIsolationLevels.READ_UNCOMMITTED, isLast)
  await uncommitted.consumer.close(true)
  const first = messages[0]
  return {
    first_record: [Number(first.offset), first.key, first.value, [...first.headers]],
    read_committed: messages.map(({ value }) => value),
    read_uncommitted: uncommitted.messages.map(({ value }) => value),
    end_offset: await offsetAt(ListOffsetTimestamps.LATEST),
    group_state: group.state[0] + group.state.slice(1).toLowerCase(), // the client has Kafka's names in capitals
    group_members: group.members.size,
    committed_offset: await offsetOfGroup(plan.group),
    transactional_offset: await offsetOfGroup(plan.transactional_group),
    is_group_listed: await isGroupListed(),
  }
}

async function logBytes() {
  const topics = [{ name: plan.records_topic, partitions: [0] }]
  const brokers = await admin.describeLogDirs({ topics })
  const partitions = brokers.flatMap(({ results }) => results.flatMap((folder) => folder.topics.flatMap((topic) => topic.partitions)))
  return partitions.reduce((sum, { partitionSize }) => sum + Number(partitionSize), 0)
}

async function deleteAll() {
  const [deleted] = await admin.deleteRecords({
    topics: [{ name: plan.records_topic, partitions: [{ partition: 0, offset: BigInt(plan.delete_before) }] }],
  })
  await admin.deleteGroups({ groups: [plan.group] })
  await admin.deleteTopics({ topics: [plan.topic] })
  return {
    low_watermark: Number(deleted.partitions[0].lowWatermark),
    start_offset: await offsetAt(ListOffsetTimestamps.EARLIEST),
    is_group_listed_after_deletion: await isGroupListed(),
    is_listed_after_deletion: await isListed(),
  }
}

const facts = await administerTopics()
facts.first_offsets = await produce()
Object.assign(facts, await consume(), { log_bytes: await logBytes() }, await deleteAll())
await admin.close()
// Timers of closed consumers would keep the process for seconds.
process.stdout.write(JSON.stringify(facts), () => process.exit(0))
