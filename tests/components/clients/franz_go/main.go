// franz-go against a broker: runs the plan that its argument is, and prints what it saw as one JSON object.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
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
	GrownPartitions int      `json:"grown_partitions"`
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
	TransactionalOffsets map[string]int      `json:"transactional_offsets"`
	DeleteBefore         int64               `json:"delete_before"`
	Share                sharePlan           `json:"share"`
}

type facts map[string]any

type run struct {
	plan
	ctx   context.Context
	admin *kadm.Client
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
	var kafkaError *kerr.Error
	if errors.As(err, &kafkaError) {
		return kafkaError.Code
	}
	check(err)
	return 0
}

func (r *run) client(options ...kgo.Opt) *kgo.Client {
	options = append(options, kgo.SeedBrokers(r.Bootstrap), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	return must(kgo.NewClient(options...))
}

func (r *run) configurations() settings {
	described := must(must(r.admin.DescribeTopicConfigs(r.ctx, r.Topic)).On(r.Topic, nil))
	check(described.Err)
	values := settings{}
	for _, config := range described.Configs {
		if _, isPlanned := r.Configurations.Created[config.Key]; isPlanned {
			values[config.Key] = *config.Value
		}
	}
	return values
}

func (r *run) isListed() bool {
	return must(r.admin.ListTopics(r.ctx)).Has(r.Topic)
}

func (r *run) partitionCount() int {
	return len(must(r.admin.Metadata(r.ctx, r.Topic)).Topics[r.Topic].Partitions)
}

func changes(values settings) []kadm.AlterConfig {
	var configs []kadm.AlterConfig
	for name, value := range values {
		configs = append(configs, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: kadm.StringPtr(value)})
	}
	return configs
}

func (r *run) administerTopics() {
	created := map[string]*string{}
	for name, value := range r.Configurations.Created {
		created[name] = kadm.StringPtr(value)
	}
	for _, name := range []string{"first_create_error", "second_create_error"} {
		_, err := r.admin.CreateTopic(r.ctx, r.Partitions, 1, created, r.Topic)
		r.facts[name] = code(err)
	}
	must(r.admin.CreateTopic(r.ctx, 1, 1, nil, r.RecordsTopic))
	r.facts["is_listed"] = r.isListed()
	r.facts["partitions"] = r.partitionCount()
	r.facts["created_configurations"] = r.configurations()
	check(must(r.admin.UpdatePartitions(r.ctx, r.GrownPartitions, r.Topic)).Error())
	r.facts["grown_partitions"] = r.partitionCount()
	altered := must(r.admin.AlterTopicConfigs(r.ctx, changes(r.Configurations.Incremental), r.Topic))
	check(must(altered.On(r.Topic, nil)).Err)
	r.facts["incremental_configurations"] = r.configurations()
	altered = must(r.admin.AlterTopicConfigsState(r.ctx, changes(r.Configurations.Replaced), r.Topic))
	check(must(altered.On(r.Topic, nil)).Err)
	r.facts["replaced_configurations"] = r.configurations()
	places := kadm.TopicsSet{}
	places.Add(r.Topic, 0)
	elections := must(r.admin.ElectLeaders(r.ctx, kadm.ElectPreferredReplica, places))
	r.facts["election_error"] = code(elections[r.Topic][0].Err)
}

func (r *run) records(label string) []*kgo.Record {
	var records []*kgo.Record
	for _, value := range r.Values[label] {
		records = append(records, &kgo.Record{
			Topic:   r.RecordsTopic,
			Key:     []byte("key of " + value),
			Value:   []byte(value),
			Headers: []kgo.RecordHeader{{Key: r.Header[0], Value: []byte(r.Header[1])}},
		})
	}
	return records
}

// sendWith sends the values of a label by a producer of its own; the offset of the first of them.
func (r *run) sendWith(label string, options ...kgo.Opt) int64 {
	producer := r.client(options...)
	defer producer.Close()
	results := producer.ProduceSync(r.ctx, r.records(label)...)
	check(results.FirstErr())
	return results[0].Record.Offset
}

// sendTransactions commits one transaction and aborts one, each with the offset behind what its member read.
func (r *run) sendTransactions(offsets map[string]int64) {
	session := must(kgo.NewGroupTransactSession(
		kgo.SeedBrokers(r.Bootstrap),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.TransactionalID(r.TransactionalID),
		kgo.ConsumerGroup(r.TransactionalGroup),
		kgo.ConsumeTopics(r.RecordsTopic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	))
	defer session.Close()
	position := 0
	for _, label := range []string{"committed", "aborted"} {
		for position < r.TransactionalOffsets[label] {
			fetches := session.PollRecords(r.ctx, r.TransactionalOffsets[label]-position)
			check(fetches.Err())
			position += fetches.NumRecords()
		}
		check(session.Begin())
		results := session.ProduceSync(r.ctx, r.records(label)...)
		check(results.FirstErr())
		offsets[label] = results[0].Record.Offset
		isCommitted := must(session.End(r.ctx, kgo.TransactionEndTry(label == "committed")))
		if isCommitted != (label == "committed") {
			check(fmt.Errorf("the transaction %s ended the other way", label))
		}
	}
}

func (r *run) produce() {
	codecs := map[string]kgo.CompressionCodec{
		"none":   kgo.NoCompression(),
		"gzip":   kgo.GzipCompression(),
		"snappy": kgo.SnappyCompression(),
		"lz4":    kgo.Lz4Compression(),
		"zstd":   kgo.ZstdCompression(),
	}
	offsets := map[string]int64{}
	for _, codec := range r.Codecs {
		offsets[codec] = r.sendWith(codec, kgo.ProducerBatchCompression(codecs[codec]), kgo.DisableIdempotentWrite())
	}
	plain := kgo.ProducerBatchCompression(kgo.NoCompression())
	offsets["idempotent"] = r.sendWith("idempotent", plain)
	r.sendTransactions(offsets)
	offsets["last"] = r.sendWith("last", plain, kgo.DisableIdempotentWrite())
	r.facts["first_offsets"] = offsets
}

// readToLast reads until the last value of the plan.
func (r *run) readToLast(consumer *kgo.Client) (records []*kgo.Record) {
	last := r.Values["last"][len(r.Values["last"])-1]
	for len(records) == 0 || string(records[len(records)-1].Value) != last {
		fetches := consumer.PollFetches(r.ctx)
		check(fetches.Err())
		records = append(records, fetches.Records()...)
	}
	return records
}

func values(records []*kgo.Record) (texts []string) {
	for _, record := range records {
		texts = append(texts, string(record.Value))
	}
	return texts
}

func (r *run) offsetOfGroup(group string) int64 {
	offset, _ := must(r.admin.FetchOffsets(r.ctx, group)).Lookup(r.RecordsTopic, 0)
	check(offset.Err)
	return offset.At
}

func (r *run) isGroupListed() bool {
	_, isListed := must(r.admin.ListGroups(r.ctx))[r.Group]
	return isListed
}

func (r *run) consume() {
	start := kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())
	member := r.client(
		kgo.ConsumerGroup(r.Group), kgo.ConsumeTopics(r.RecordsTopic), start,
		kgo.DisableAutoCommit(), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	)
	records := r.readToLast(member)
	check(member.CommitUncommittedOffsets(r.ctx))
	group := must(must(r.admin.DescribeGroups(r.ctx, r.Group)).On(r.Group, nil))
	check(group.Err)
	check(member.LeaveGroupContext(r.ctx))
	member.Close()
	consumer := r.client(kgo.ConsumeTopics(r.RecordsTopic), start)
	r.facts["read_uncommitted"] = values(r.readToLast(consumer))
	consumer.Close()
	ends := must(r.admin.ListEndOffsets(r.ctx, r.RecordsTopic))
	first := records[0]
	headers := [][]string{}
	for _, header := range first.Headers {
		headers = append(headers, []string{header.Key, string(header.Value)})
	}
	r.facts["first_record"] = []any{first.Offset, string(first.Key), string(first.Value), headers}
	r.facts["read_committed"] = values(records)
	r.facts["end_offset"] = ends[r.RecordsTopic][0].Offset
	r.facts["group_state"] = group.State
	r.facts["group_members"] = len(group.Members)
	r.facts["committed_offset"] = r.offsetOfGroup(r.Group)
	r.facts["transactional_offset"] = r.offsetOfGroup(r.TransactionalGroup)
	r.facts["is_group_listed"] = r.isGroupListed()
}

func (r *run) describeLogs() {
	places := kadm.TopicsSet{}
	places.Add(r.RecordsTopic, 0)
	var sizes int64
	for _, folders := range must(r.admin.DescribeAllLogDirs(r.ctx, places)) {
		check(folders.Error())
		folders.EachPartition(func(partition kadm.DescribedLogDirPartition) { sizes += partition.Size })
	}
	r.facts["log_bytes"] = sizes
}

func (r *run) delete() {
	before := kadm.Offsets{}
	before.AddOffset(r.RecordsTopic, 0, r.DeleteBefore, -1)
	deleted := must(must(r.admin.DeleteRecords(r.ctx, before)).On(r.RecordsTopic, 0, nil))
	check(deleted.Err)
	r.facts["low_watermark"] = deleted.LowWatermark
	r.facts["start_offset"] = must(r.admin.ListStartOffsets(r.ctx, r.RecordsTopic))[r.RecordsTopic][0].Offset
	must(r.admin.DeleteGroup(r.ctx, r.Group))
	must(r.admin.DeleteTopic(r.ctx, r.Topic))
	r.facts["is_group_listed_after_deletion"] = r.isGroupListed()
	r.facts["is_listed_after_deletion"] = r.isListed()
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	r := &run{ctx: ctx, facts: facts{}}
	check(json.Unmarshal([]byte(os.Args[1]), &r.plan))
	client := r.client()
	defer client.Close()
	r.admin = kadm.NewClient(client)
	r.administerTopics()
	r.produce()
	r.consume()
	r.describeLogs()
	r.shareRecords()
	r.delete()
	check(json.NewEncoder(os.Stdout).Encode(r.facts))
}
