package main

import (
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// sharePlan says what a member of a share group does with each record: all that aren't named here, it accepts.
type sharePlan struct {
	Topic    string   `json:"topic"`
	Group    string   `json:"group"`
	Values   []string `json:"values"`
	Released []int64  `json:"released"`
	Rejected []int64  `json:"rejected"`
}

// shareRecords delivers the records of the plan; records that are released are accepted at their second delivery.
func (r *run) shareRecords() {
	share := r.Share
	must(r.admin.CreateTopic(r.ctx, 1, 1, nil, share.Topic))
	r.readFromStart(share.Group)
	producer := r.client()
	for _, value := range share.Values {
		check(producer.ProduceSync(r.ctx, &kgo.Record{Topic: share.Topic, Value: []byte(value)}).FirstErr())
	}
	producer.Close()
	var refused atomic.Int32 // the callback runs in a goroutine of the client
	member := r.client(
		kgo.ShareGroup(share.Group), kgo.ConsumeTopics(share.Topic),
		kgo.ShareAckCallback(func(_ *kgo.Client, results kgo.ShareAckResults) {
			if !results.Ok() {
				refused.Add(1)
			}
		}),
	)
	deliveries := [][]any{}
	for len(deliveries) < len(share.Values)+len(share.Released) {
		fetches := member.PollFetches(r.ctx)
		check(fetches.Err())
		for _, record := range fetches.Records() {
			status := statusOf(record, share)
			record.Ack(status)
			deliveries = append(deliveries, []any{record.Offset, string(record.Value), record.DeliveryCount(), ackNames[status]})
		}
		check(member.FlushAcks(r.ctx))
	}
	group := must(r.admin.DescribeShareGroups(r.ctx, share.Group))[share.Group]
	check(group.Err)
	check(member.LeaveGroupContext(r.ctx))
	member.Close()
	offsets := must(r.admin.DescribeShareGroupOffsets(r.ctx, share.Group))[share.Group]
	check(offsets.Err)
	place, _ := offsets.Offsets.Lookup(share.Topic, 0)
	check(place.Err)
	r.facts["share_deliveries"] = deliveries
	r.facts["share_refused_acknowledgements"] = refused.Load()
	r.facts["share_group_state"] = group.GroupState
	r.facts["share_group_members"] = len(group.Members)
	r.facts["share_lag"] = place.Lag
}

var ackNames = map[kgo.AckStatus]string{kgo.AckAccept: "accept", kgo.AckRelease: "release", kgo.AckReject: "reject"}

func statusOf(record *kgo.Record, share sharePlan) kgo.AckStatus {
	for _, offset := range share.Rejected {
		if record.Offset == offset {
			return kgo.AckReject
		}
	}
	for _, offset := range share.Released {
		if record.Offset == offset && record.DeliveryCount() == 1 {
			return kgo.AckRelease
		}
	}
	return kgo.AckAccept
}

// readFromStart sets share.auto.offset.reset of a group; kadm has no call for configurations of groups.
func (r *run) readFromStart(group string) {
	earliest := "earliest"
	config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	config.Name, config.Value = "share.auto.offset.reset", &earliest
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeGroupConfig, group
	resource.Configs = append(resource.Configs, config)
	request := kmsg.NewPtrIncrementalAlterConfigsRequest()
	request.Resources = append(request.Resources, resource)
	client := r.client()
	defer client.Close()
	response := must(request.RequestWith(r.ctx, client))
	check(kerr.ErrorForCode(response.Resources[0].ErrorCode))
}
