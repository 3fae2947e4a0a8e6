// sarama against a broker: runs the plan that its argument is, and prints what it saw as one JSON object.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/IBM/sarama"
)

const timeout = 60 * time.Second

type settings map[string]string

// plan is what tests/components/test_other_clients.py wants done.
type plan struct {
	Bootstrap       string   `json:"bootstrap"`
	Topic           string   `json:"topic"`
	RecordsTopic    string   `json:"records_topic"`
	Group           string   `json:"group"`
	Partitions      int32    `json:"partitions"`
	GrownPartitions int32    `json:"grown_partitions"`
	Codecs          []string `json:"codecs"`
	Header          []string `json:"header"`
	Configurations  struct {
		Created     settings `json:"created"`
		Incremental settings `json:"incremental"`
		Replaced    settings `json:"replaced"`
	} `json:"configurations"`
	Values               map[string][]string `json:"values"`
	TransactionalID      string              `json:"transactional_id"`
	TransactionalGroup   string              `json:"transactional_group"`
	TransactionalOffsets map[string]int64    `json:"transactional_offsets"`
	DeleteBefore         int64               `json:"delete_before"`
}

type facts map[string]any

type run struct {
	plan
	ctx   context.Context
	admin sarama.ClusterAdmin
	facts facts
}

// check ends the program, with the calls that led there: the plan expects no error.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// must is for calls that have a value too.
func must[T any](value T, err error) T {
	check(err)
	return value
}

// code is the number that the protocol has for an error; 0 for none.
func code(err error) int16 {
	var kafkaError sarama.KError
	if errors.As(err, &kafkaError) {
		return int16(kafkaError)
	}
	check(err)
	return 0
}

// config is one for the newest protocol that sarama knows.
func config() *sarama.Config {
	values := sarama.NewConfig()
	values.Version = sarama.MaxVersion
	values.Producer.RequiredAcks = sarama.WaitForAll
	values.Producer.Return.Successes = true
	values.Producer.Partitioner = sarama.NewManualPartitioner
	values.Consumer.Offsets.Initial = sarama.OffsetOldest
	values.Consumer.Offsets.AutoCommit.Enable = false
	values.Consumer.MaxWaitTime = 200 * time.Millisecond
	return values
}

func pointers(values settings) map[string]*string {
	entries := map[string]*string{}
	for name, value := range values {
		entries[name] = &value
	}
	return entries
}

func (r *run) configurations() settings {
	resource := &sarama.ConfigResource{Type: sarama.TopicResource, Name: r.Topic}
	for name := range r.Configurations.Created {
		resource.ConfigNames = append(resource.ConfigNames, name)
	}
	results := must(r.admin.DescribeConfigs([]*sarama.ConfigResource{resource}, sarama.DescribeConfigsOptions{}))
	values := settings{}
	for _, entry := range results[0].Configs {
		values[entry.Name] = entry.Value
	}
	return values
}

func (r *run) isListed() bool {
	_, isListed := must(r.admin.ListTopics())[r.Topic]
	return isListed
}

func (r *run) partitionCount() int {
	return len(must(r.admin.DescribeTopics([]string{r.Topic}))[0].Partitions)
}

func (r *run) administerTopics() {
	detail := &sarama.TopicDetail{
		NumPartitions: r.Partitions, ReplicationFactor: 1, ConfigEntries: pointers(r.Configurations.Created),
	}
	r.facts["first_create_error"] = code(r.admin.CreateTopic(r.Topic, detail, false))
	r.facts["second_create_error"] = code(r.admin.CreateTopic(r.Topic, detail, false))
	check(r.admin.CreateTopic(r.RecordsTopic, &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}, false))
	r.facts["is_listed"] = r.isListed()
	r.facts["partitions"] = r.partitionCount()
	r.facts["created_configurations"] = r.configurations()
	check(r.admin.CreatePartitions(r.Topic, r.GrownPartitions, nil, false))
	r.facts["grown_partitions"] = r.partitionCount()
	changes := map[string]sarama.IncrementalAlterConfigsEntry{}
	for name, value := range pointers(r.Configurations.Incremental) {
		changes[name] = sarama.IncrementalAlterConfigsEntry{
			Operation: sarama.IncrementalAlterConfigsOperationSet, Value: value,
		}
	}
	check(r.admin.IncrementalAlterConfig(sarama.TopicResource, r.Topic, changes, false))
	r.facts["incremental_configurations"] = r.configurations()
	check(r.admin.AlterConfig(sarama.TopicResource, r.Topic, pointers(r.Configurations.Replaced), false))
	r.facts["replaced_configurations"] = r.configurations()
	elections := must(r.admin.ElectLeaders(sarama.PreferredElection, map[string][]int32{r.Topic: {0}}))
	r.facts["election_error"] = int16(elections[r.Topic][0].ErrorCode)
}

// send sends the values of a label; the offset of the first of them.
func (r *run) send(producer sarama.SyncProducer, label string) int64 {
	var messages []*sarama.ProducerMessage
	for _, value := range r.Values[label] {
		messages = append(messages, &sarama.ProducerMessage{
			Topic:   r.RecordsTopic,
			Key:     sarama.StringEncoder("key of " + value),
			Value:   sarama.StringEncoder(value),
			Headers: []sarama.RecordHeader{{Key: []byte(r.Header[0]), Value: []byte(r.Header[1])}},
		})
	}
	check(producer.SendMessages(messages))
	return messages[0].Offset
}

// sendWith sends the values of a label by a producer of its own.
func (r *run) sendWith(label string, codec sarama.CompressionCodec, isIdempotent bool) int64 {
	values := config()
	values.Producer.Compression = codec
	if isIdempotent {
		values.Producer.Idempotent = true
		values.Net.MaxOpenRequests = 1
	}
	producer := must(sarama.NewSyncProducer([]string{r.Bootstrap}, values))
	defer producer.Close()
	return r.send(producer, label)
}

// sendTransactions commits one transaction, with an offset of a group, and aborts one.
func (r *run) sendTransactions(offsets map[string]int64) {
	values := config()
	values.Producer.Idempotent = true
	values.Net.MaxOpenRequests = 1
	values.Producer.Transaction.ID = r.TransactionalID
	producer := must(sarama.NewSyncProducer([]string{r.Bootstrap}, values))
	defer producer.Close()
	ends := map[string]func() error{"committed": producer.CommitTxn, "aborted": producer.AbortTxn}
	for _, label := range []string{"committed", "aborted"} {
		check(producer.BeginTxn())
		offsets[label] = r.send(producer, label)
		place := &sarama.PartitionOffsetMetadata{Partition: 0, Offset: r.TransactionalOffsets[label], LeaderEpoch: -1}
		sources := map[string][]*sarama.PartitionOffsetMetadata{r.RecordsTopic: {place}}
		check(producer.AddOffsetsToTxn(sources, r.TransactionalGroup))
		check(ends[label]())
	}
}

func (r *run) produce() {
	codecs := map[string]sarama.CompressionCodec{
		"none":   sarama.CompressionNone,
		"gzip":   sarama.CompressionGZIP,
		"snappy": sarama.CompressionSnappy,
		"lz4":    sarama.CompressionLZ4,
		"zstd":   sarama.CompressionZSTD,
	}
	offsets := map[string]int64{}
	for _, codec := range r.Codecs {
		offsets[codec] = r.sendWith(codec, codecs[codec], false)
	}
	offsets["idempotent"] = r.sendWith("idempotent", sarama.CompressionNone, true)
	r.sendTransactions(offsets)
	offsets["last"] = r.sendWith("last", sarama.CompressionNone, false)
	r.facts["first_offsets"] = offsets
}

func (r *run) isLast(message *sarama.ConsumerMessage) bool {
	last := r.Values["last"]
	return string(message.Value) == last[len(last)-1]
}

// member is a handler of a group: it reads to the last value of the plan, commits, and looks at its group.
type member struct {
	*run
	end      context.CancelFunc
	messages []*sarama.ConsumerMessage
	group    *sarama.GroupDescription
}

func (m *member) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (m *member) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		m.messages = append(m.messages, message)
		session.MarkMessage(message, "")
		if m.isLast(message) {
			session.Commit()
			m.group = must(m.admin.DescribeConsumerGroups([]string{m.Group}))[0]
			m.end()
			return nil
		}
	}
	return nil
}

// readUncommitted reads the partition without a group.
func (r *run) readUncommitted() (messages []*sarama.ConsumerMessage) {
	consumer := must(sarama.NewConsumer([]string{r.Bootstrap}, config()))
	defer consumer.Close()
	partition := must(consumer.ConsumePartition(r.RecordsTopic, 0, sarama.OffsetOldest))
	defer partition.Close()
	for message := range partition.Messages() {
		messages = append(messages, message)
		if r.isLast(message) {
			break
		}
	}
	return messages
}

func values(messages []*sarama.ConsumerMessage) (texts []string) {
	for _, message := range messages {
		texts = append(texts, string(message.Value))
	}
	return texts
}

func (r *run) offsetOfGroup(group string) int64 {
	answer := must(r.admin.ListConsumerGroupOffsets(group, map[string][]int32{r.RecordsTopic: {0}}))
	return answer.GetBlock(r.RecordsTopic, 0).Offset
}

func (r *run) isGroupListed() bool {
	_, isListed := must(r.admin.ListConsumerGroups())[r.Group]
	return isListed
}

func (r *run) offsetAt(timestamp int64) int64 {
	places := map[string]map[int32]int64{r.RecordsTopic: {0: timestamp}}
	place := must(r.admin.ListOffsets(places, nil))[r.RecordsTopic][0]
	check(errorOf(place.Err))
	return place.Offset
}

func (r *run) consume() {
	options := config()
	options.Consumer.IsolationLevel = sarama.ReadCommitted
	group := must(sarama.NewConsumerGroup([]string{r.Bootstrap}, r.Group, options))
	ctx, end := context.WithCancel(r.ctx)
	handler := &member{run: r, end: end}
	check(group.Consume(ctx, []string{r.RecordsTopic}, handler))
	check(group.Close())
	first := handler.messages[0]
	headers := [][]string{}
	for _, header := range first.Headers {
		headers = append(headers, []string{string(header.Key), string(header.Value)})
	}
	r.facts["first_record"] = []any{first.Offset, string(first.Key), string(first.Value), headers}
	r.facts["read_committed"] = values(handler.messages)
	r.facts["read_uncommitted"] = values(r.readUncommitted())
	r.facts["end_offset"] = r.offsetAt(sarama.OffsetNewest)
	r.facts["group_state"] = handler.group.State
	r.facts["group_members"] = len(handler.group.Members)
	r.facts["committed_offset"] = r.offsetOfGroup(r.Group)
	r.facts["transactional_offset"] = r.offsetOfGroup(r.TransactionalGroup)
	r.facts["is_group_listed"] = r.isGroupListed()
}

func (r *run) describeLogs() {
	var sizes int64
	for _, folders := range must(r.admin.DescribeLogDirs([]int32{1})) {
		for _, folder := range folders {
			check(errorOf(folder.ErrorCode))
			for _, topic := range folder.Topics {
				if topic.Topic == r.RecordsTopic {
					sizes += topic.Partitions[0].Size
				}
			}
		}
	}
	r.facts["log_bytes"] = sizes
}

// errorOf is nil for the code 0 too, which sarama hands out as an error.
func errorOf(err error) error {
	if errors.Is(err, sarama.ErrNoError) {
		return nil
	}
	return err
}

func (r *run) delete() {
	check(r.admin.DeleteRecords(r.RecordsTopic, map[int32]int64{0: r.DeleteBefore}))
	r.facts["start_offset"] = r.offsetAt(sarama.OffsetOldest)
	check(r.admin.DeleteConsumerGroup(r.Group))
	check(r.admin.DeleteTopic(r.Topic))
	r.facts["is_group_listed_after_deletion"] = r.isGroupListed()
	r.facts["is_listed_after_deletion"] = r.isListed()
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	r := &run{ctx: ctx, facts: facts{}}
	check(json.Unmarshal([]byte(os.Args[1]), &r.plan))
	r.admin = must(sarama.NewClusterAdmin([]string{r.Bootstrap}, config()))
	defer r.admin.Close()
	r.administerTopics()
	r.produce()
	r.consume()
	r.describeLogs()
	r.delete()
	check(json.NewEncoder(os.Stdout).Encode(r.facts))
}
