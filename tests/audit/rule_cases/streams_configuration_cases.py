"""Mutations of streams groups by rule: topologies, members, configurations and hashes."""

from dataclasses import replace
from typing import Final

from tests.audit.model_group_log import GroupLog
from tests.audit.rule_cases.cases import Table
from tests.audit.streams_changes import HALF_MINUTE_MS, at_ms, basic, configured, ended, with_settings, with_topics

CONFIGURATIONS: Final[Table[GroupLog]] = {
    "streams_validated_topology": (
        {str(epoch): lambda epoch=epoch: basic().change(241, validated_topology_epoch=epoch) for epoch in (1, 2, -2)},
        {
            "not validated": lambda: basic().change(241, validated_topology_epoch=-1),
            "that of the topology": basic,
            "of a topology that is compacted": lambda: basic().compacted(1),
        },
    ),
    "streams_member_with_newer_topology": (
        {str(place): lambda place=place: basic().change(place, topology_epoch=1) for place in (0, 13, 232)},
        {
            "that of the group": basic,
            "of a topology that is compacted": lambda: basic().change(0, topology_epoch=0).compacted(1),
            "of a deleted group": ended,
        },
    ),
    "streams_member_with_older_topology": (
        {str(place): lambda place=place: basic().change(place, topology_epoch=-1) for place in (0, 13, 232)},
        {
            "that of the group": lambda: basic().cut(15),
            "of a topology that is compacted": lambda: basic().cut(15).compacted(1),
            "of a deleted group": ended,
        },
    ),
    "streams_odd_member": (
        {
            "no process": lambda: basic().change(232, process_id=""),
            "no timeout": lambda: basic().change(0, rebalance_timeout_ms=0),
            "a static member": lambda: basic().change(13, instance_id="one"),
        },
        {
            "another process": lambda: basic().change(232, process_id="p"),
            "a rack": lambda: basic().change(232, rack_id="r"),
            "tags": lambda: basic().change(232, client_tags=({"key": "zone", "value": "a"},)),
        },
    ),
    "streams_assignment_configurations": (
        {
            "none": configured,
            "no number": lambda: configured(("num.standby.replicas", "many")),
            "one more": lambda: configured(("num.standby.replicas", "0"), ("num.warmup.replicas", "1")),
        },
        {str(count): lambda count=count: configured(("num.standby.replicas", str(count))) for count in (0, 1, 2)},
    ),
    "streams_standby_replicas_limit": (
        {str(count): lambda count=count: configured(("num.standby.replicas", str(count))) for count in (3, 4, 100)}
        | {"2 where brokers allow 1": lambda: with_settings(
            configured(("num.standby.replicas", "2")), max_standby_replicas=1)},
        {str(count): lambda count=count: configured(("num.standby.replicas", str(count))) for count in (0, 1, 2)}
        | {"3 where brokers allow 3": lambda: with_settings(
            configured(("num.standby.replicas", "3")), max_standby_replicas=3)},
    ),
    "streams_metadata_hash": (
        {
            "without a change": lambda: with_topics(basic().change(241, metadata_hash=5)),
            "none": lambda: with_topics(basic().change(241, metadata_hash=0)),
            "of no topics": lambda: replace(basic().cut(3), topics={}),
        },
        {
            "as recorded": with_topics,
            "with a change": lambda: with_topics(
                basic().change(241, metadata_hash=5), more_ms=at_ms(241) - HALF_MINUTE_MS),
            "without topics": lambda: basic().change(241, metadata_hash=5),
        },
    ),
}  # fmt: skip
