"""Guards of APIs that need a right to the cluster and refuse requests in a form of their own."""

from typing import Any, Final

from sharelens.broker.handlers.election_answers import refused_election
from sharelens.broker.handlers.rights.guards import CODES, MESSAGES, Call, Outcome, Proceed, cluster, refusal
from sharelens.broker.security.authorization.entries import Operation, ResourceType

_ALTER: Final = cluster(Operation.ALTER)
_DESCRIBE: Final = cluster(Operation.DESCRIBE)


def describe_log_dirs(call: Call, request: Any, proceed: Proceed) -> Outcome:
    """DESCRIBE on the cluster; without it no log directory is shown. Answers below version 3 have no error code."""
    if _DESCRIBE.is_met(call, request):
        return proceed(request)
    return {**refusal(ResourceType.CLUSTER), "results": []}


def elect_leaders(call: Call, request: Any, proceed: Proceed) -> Outcome:
    """ALTER on the cluster; without it each named partition is refused, too."""
    if _ALTER.is_met(call, request):
        return proceed(request)
    return refused_election(request, CODES[ResourceType.CLUSTER], MESSAGES[ResourceType.CLUSTER])
