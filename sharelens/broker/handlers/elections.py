"""ElectLeaders 0 to 2: a single node leads every partition, so none needs an election (ReplicationControlManager)."""

from typing import TYPE_CHECKING, Any, Final

from kio.schema.errors import ErrorCode

from sharelens.broker.handlers.election_answers import Result, election_results, refused_election
from sharelens.broker.protocol.registry import ELEMENTS_MAX_AT_ONCE, Answer, RequestContext, handles
from sharelens.kafka_formats.messages.api_keys import ApiKey

if TYPE_CHECKING:
    from sharelens.broker.broker import Broker

PREFERRED, UNCLEAN = 0, 1
ELECTION_TYPES: Final = (PREFERRED, UNCLEAN)


@handles(ApiKey.ELECT_LEADERS, (0, 2), elements_max=ELEMENTS_MAX_AT_ONCE)
def elect_leaders(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """The result of each named partition; for null each topic with the partitions that had an election, which are none.

    An unknown type of election is refused with INVALID_REQUEST.
    """
    election_type = getattr(request, "election_type", PREFERRED)
    if election_type not in ELECTION_TYPES:
        return refused_election(request, ErrorCode.invalid_request, f"Unknown election type {election_type}")
    if request.topic_partitions is None:
        results: list[Answer] = [{"topic": name, "partition_result": []} for name in broker.catalog.topics]
    else:
        results = election_results(request, lambda name, partition: _result(broker, name, partition))
    return {"error_code": ErrorCode.none, "replica_election_results": results}


def _result(broker: "Broker", name: str, partition: int) -> Result:
    topic = broker.catalog.by_name(name)
    if topic is None:
        code, message = ErrorCode.unknown_topic_or_partition, f"No such topic as {name}"
    elif not 0 <= partition < topic.partitions:
        code, message = ErrorCode.unknown_topic_or_partition, f"No such partition as {name}-{partition}"
    else:
        code, message = ErrorCode.election_not_needed, "Leader election not needed for topic partition."
    return {"error_code": code, "error_message": message}
