"""Guards of requests about transactions and the users of SCRAM."""

from collections.abc import Mapping
from typing import Any, Final

from sharelens.broker.handlers.rights.guards import Call, Outcome, Proceed, change_each, named, refusal, refused
from sharelens.broker.protocol.registry import Answer
from sharelens.broker.security.authorization.entries import Operation, ResourceType

_NO_PRODUCER: Final[Mapping[str, Any]] = {"producer_id": -1, "producer_epoch": -1}
_describable = named("transactional_ids", Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID)


def init_producer_id(call: Call, request: Any, proceed: Proceed) -> Outcome:
    """WRITE on the transactional id; without one IDEMPOTENT_WRITE on the cluster, or WRITE on some topic."""
    name = request.transactional_id
    if name is not None:
        may = call.rights.has(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, name)
        error = refusal(ResourceType.TRANSACTIONAL_ID, **_NO_PRODUCER)
    else:
        may = call.rights.cluster(Operation.IDEMPOTENT_WRITE) or call.rights.some_topic(Operation.WRITE)
        error = refusal(ResourceType.CLUSTER, **_NO_PRODUCER)
    return proceed(request) if may else refused(call, request, error)


def describe_transactions(call: Call, request: Any, proceed: Proceed) -> Outcome:
    """DESCRIBE on each transactional id; topics without DESCRIBE are left out."""

    def visible(call: Call, request: Any, transaction: Answer) -> Answer:
        shown = [
            topic for topic in transaction.get("topics", ()) if call.rights.topic(Operation.DESCRIBE, topic["topic"])
        ]
        return {**transaction, "topics": shown}

    shown = change_each("transaction_states", visible)
    return shown(call, request, lambda allowed_request: _describable(call, allowed_request, proceed))


def is_listed(call: Call, transaction: Answer) -> bool:
    """Whether ListTransactions shows a transaction: with DESCRIBE on its id."""
    return call.rights.has(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transaction["transactional_id"])
