"""The rights of each API and its guard, in one table (KafkaApis, ControllerApis, AclApis of Kafka 4.3).

A right is an operation on a resource: a topic, a group, a transactional id, or the cluster.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from sharelens.broker.handlers.rights import cluster as of_cluster
from sharelens.broker.handlers.rights import groups, transactions, users
from sharelens.broker.handlers.rights import topics as of_topics
from sharelens.broker.handlers.rights.guards import (
    Call,
    Guard,
    Outcome,
    chain,
    change_each,
    cluster,
    everyone,
    group,
    keep,
    named,
    require_any,
    topics,
    transactional_id,
)
from sharelens.broker.protocol.registry import Api, Handler, RequestContext
from sharelens.broker.security.authorization.authorizer import Authorizer
from sharelens.broker.security.authorization.entries import Operation, ResourceType
from sharelens.broker.security.authorization.rights import Rights, host_text
from sharelens.kafka_formats.messages.api_keys import ApiKey

ALTER, ALTER_CONFIGS, CLUSTER_ACTION = Operation.ALTER, Operation.ALTER_CONFIGS, Operation.CLUSTER_ACTION
DELETE, DESCRIBE, DESCRIBE_CONFIGS = Operation.DELETE, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS
READ, WRITE = Operation.READ, Operation.WRITE
NO_RIGHT: Final = "none"


@dataclass(frozen=True, slots=True)
class Rule:
    """What a client needs for an API, as the reference prints it, and the guard that checks it."""

    rights: str
    guard: Guard = everyone


_CLUSTER_ACTION = Rule("CLUSTER_ACTION cluster", require_any(cluster(CLUSTER_ACTION), has_message=True))
_ALTER_CONFIGS = Rule("ALTER_CONFIGS topic, group or (for brokers) cluster", of_topics.configs(ALTER_CONFIGS))
_READ_GROUP = Rule("READ group", require_any(group(READ)))
_HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."
_HIDDEN_OF_STREAMS = "The described group uses topics that the client is not authorized to describe."

RULES: Final[Mapping[int, Rule]] = {
    ApiKey.PRODUCE: Rule("WRITE topic; WRITE transactional id for transactional records", of_topics.produce),
    ApiKey.FETCH: Rule("READ topic; CLUSTER_ACTION cluster for replicas", of_topics.fetch),
    ApiKey.LIST_OFFSETS: Rule("DESCRIBE topic", topics("topics", DESCRIBE)),
    ApiKey.METADATA: Rule("DESCRIBE topic; CREATE cluster or topic to create it", of_topics.metadata),
    ApiKey.OFFSET_COMMIT: Rule("READ group, READ topic", chain(require_any(group(READ)), topics("topics", READ))),
    ApiKey.OFFSET_FETCH: Rule("DESCRIBE group, DESCRIBE topic", groups.fetch_offsets),
    ApiKey.FIND_COORDINATOR: Rule(
        "DESCRIBE group or transactional id; CLUSTER_ACTION cluster for share coordinators", groups.find_coordinator
    ),
    ApiKey.JOIN_GROUP: Rule("READ group", require_any(group(READ), generation_id=-1)),
    ApiKey.HEARTBEAT: _READ_GROUP,
    ApiKey.LEAVE_GROUP: _READ_GROUP,
    ApiKey.SYNC_GROUP: _READ_GROUP,
    ApiKey.DESCRIBE_GROUPS: Rule("DESCRIBE group", groups.describe("groups", groups.no_topics)),
    ApiKey.LIST_GROUPS: Rule("DESCRIBE cluster, else DESCRIBE group", groups.list_groups),
    ApiKey.SASL_HANDSHAKE: Rule(NO_RIGHT),
    ApiKey.API_VERSIONS: Rule(NO_RIGHT),
    ApiKey.CREATE_TOPICS: Rule(
        "CREATE cluster or topic; DESCRIBE_CONFIGS topic to see configurations", of_topics.create_topics
    ),
    ApiKey.DELETE_TOPICS: Rule("DELETE cluster or topic", of_topics.delete_topics),
    ApiKey.DELETE_RECORDS: Rule("DELETE topic", topics("topics", DELETE, low_watermark=-1)),
    ApiKey.INIT_PRODUCER_ID: Rule(
        "WRITE transactional id; without one IDEMPOTENT_WRITE cluster or WRITE on some topic",
        transactions.init_producer_id,
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Rule(
        "DESCRIBE topic, or CLUSTER_ACTION cluster",
        topics("topics", DESCRIBE, alternative=cluster(CLUSTER_ACTION)),
    ),
    # The rights to topics are the handler's to check: beside a refused topic the others are not attempted.
    ApiKey.ADD_PARTITIONS_TO_TXN: Rule(
        "WRITE transactional id, WRITE topic", require_any(transactional_id(WRITE, "v3_and_below_transactional_id"))
    ),
    ApiKey.ADD_OFFSETS_TO_TXN: Rule(
        "WRITE transactional id, READ group", chain(require_any(transactional_id(WRITE)), require_any(group(READ)))
    ),
    ApiKey.END_TXN: Rule("WRITE transactional id", require_any(transactional_id(WRITE))),
    ApiKey.TXN_OFFSET_COMMIT: Rule(
        "WRITE transactional id, READ group, READ topic",
        chain(require_any(transactional_id(WRITE)), require_any(group(READ)), topics("topics", READ)),
    ),
    ApiKey.DESCRIBE_ACLS: Rule("DESCRIBE cluster", require_any(cluster(DESCRIBE), has_message=True)),
    ApiKey.CREATE_ACLS: Rule("ALTER cluster", require_any(cluster(ALTER), has_message=True)),
    ApiKey.DELETE_ACLS: Rule("ALTER cluster", require_any(cluster(ALTER), has_message=True)),
    ApiKey.DESCRIBE_CONFIGS: Rule(
        "DESCRIBE_CONFIGS topic, group or (for brokers) cluster", of_topics.configs(DESCRIBE_CONFIGS)
    ),
    ApiKey.ALTER_CONFIGS: _ALTER_CONFIGS,
    ApiKey.DESCRIBE_LOG_DIRS: Rule("DESCRIBE cluster", of_cluster.describe_log_dirs),
    ApiKey.SASL_AUTHENTICATE: Rule(NO_RIGHT),
    ApiKey.CREATE_PARTITIONS: Rule("ALTER topic", topics("topics", ALTER)),
    ApiKey.DELETE_GROUPS: Rule("DELETE group", named("groups_names", DELETE, ResourceType.GROUP)),
    ApiKey.ELECT_LEADERS: Rule("ALTER cluster", of_cluster.elect_leaders),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _ALTER_CONFIGS,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: Rule(
        "DESCRIBE_CONFIGS cluster", require_any(cluster(DESCRIBE_CONFIGS), entries=None)
    ),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: Rule("DESCRIBE cluster", users.describe_users),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: Rule("ALTER cluster", users.alter_users),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: Rule("DESCRIBE cluster", require_any(cluster(DESCRIBE), has_message=True)),
    ApiKey.OFFSET_DELETE: Rule("DELETE group, READ topic", chain(require_any(group(DELETE)), topics("topics", READ))),
    ApiKey.UPDATE_FEATURES: Rule("ALTER cluster", require_any(cluster(ALTER), has_message=True)),
    ApiKey.DESCRIBE_CLUSTER: Rule("none; DESCRIBE cluster to see authorized operations"),
    ApiKey.DESCRIBE_PRODUCERS: Rule("READ topic", topics("topics", READ, has_message=True)),
    ApiKey.DESCRIBE_TRANSACTIONS: Rule(
        "DESCRIBE transactional id; DESCRIBE topic to see it", transactions.describe_transactions
    ),
    ApiKey.LIST_TRANSACTIONS: Rule("DESCRIBE transactional id", keep("transaction_states", transactions.is_listed)),
    ApiKey.LIST_CONFIG_RESOURCES: Rule("DESCRIBE_CONFIGS cluster", require_any(cluster(DESCRIBE_CONFIGS))),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: Rule("DESCRIBE topic", of_topics.describe_topic_partitions),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: Rule(
        "READ group, DESCRIBE of all named topics; regular expressions match only topics with DESCRIBE",
        groups.heartbeat(groups.subscribed_topics),
    ),
    ApiKey.CONSUMER_GROUP_DESCRIBE: Rule(
        "DESCRIBE group, DESCRIBE of all topics that members have or shall have",
        groups.describe("group_ids", groups.assigned_topics, _HIDDEN_TOPICS),
    ),
    ApiKey.SHARE_GROUP_HEARTBEAT: Rule(
        "READ group, DESCRIBE of all named topics", groups.heartbeat(groups.subscribed_topics)
    ),
    ApiKey.SHARE_GROUP_DESCRIBE: Rule(
        "DESCRIBE group, DESCRIBE of all assigned topics",
        groups.describe("group_ids", groups.assigned_topics, _HIDDEN_TOPICS),
    ),
    # The topics are those of the session, which the handler has.
    ApiKey.SHARE_FETCH: Rule("READ group, READ topic", require_any(group(READ))),
    ApiKey.SHARE_ACKNOWLEDGE: Rule("READ group, READ topic", require_any(group(READ))),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: _CLUSTER_ACTION,
    ApiKey.READ_SHARE_GROUP_STATE: _CLUSTER_ACTION,
    ApiKey.WRITE_SHARE_GROUP_STATE: _CLUSTER_ACTION,
    ApiKey.DELETE_SHARE_GROUP_STATE: _CLUSTER_ACTION,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: _CLUSTER_ACTION,
    # The right to create internal topics is the coordinator's to check, which knows what is missing.
    ApiKey.STREAMS_GROUP_HEARTBEAT: Rule(
        "READ group, DESCRIBE of all topics of the topology; CREATE cluster or topic for its internal topics",
        groups.heartbeat(groups.topology_topics),
    ),
    ApiKey.STREAMS_GROUP_DESCRIBE: Rule(
        "DESCRIBE group, DESCRIBE of all topics of the topology",
        groups.describe("group_ids", groups.described_topology_topics, _HIDDEN_OF_STREAMS),
    ),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: Rule("DESCRIBE group, DESCRIBE topic", groups.describe_share_offsets),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: Rule(
        "READ group, READ topic",
        chain(
            require_any(group(READ), has_message=True),
            change_each("responses", groups.with_topic_id),
            topics("topics", READ, has_message=True),
        ),
    ),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: Rule(
        "DELETE group, READ topic",
        chain(
            require_any(group(DELETE), has_message=True),
            topics("topics", READ, has_message=True, is_always_handled=True),
        ),
    ),
}
"""By the number of the API. A test holds that each API of the broker is here."""


def guarded(apis: Mapping[int, Api], authorizer: Callable[[], Authorizer]) -> Mapping[int, Api]:
    """The same APIs with handlers behind their guards.

    authorizer: the current one, which decides on each request.
    """
    return {key: replace(api, handler=_guarded(api.handler, RULES[key].guard, authorizer)) for key, api in apis.items()}


def _guarded(handler: Handler, guard: Guard, authorizer: Callable[[], Authorizer]) -> Handler:
    def handle(broker: Any, request: Any, context: RequestContext) -> Outcome:
        rights = Rights(authorizer(), context.connection.principal, host_text(context.client_host))
        context = replace(context, rights=rights)
        return guard(Call(broker, context), request, lambda allowed_request: handler(broker, allowed_request, context))

    return handle
