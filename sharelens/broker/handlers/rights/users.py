"""Guards of the APIs that describe and alter users of SCRAM (ControllerApis, ScramImage of Kafka 4.3)."""

from typing import Any, Final

from sharelens.broker.handlers.rights.guards import Call, Outcome, Proceed, cluster, refusal
from sharelens.broker.security.authorization.entries import Operation, ResourceType

_REFUSAL: Final = {**refusal(ResourceType.CLUSTER), "error_message": None}
_DESCRIBE: Final = cluster(Operation.DESCRIBE)
_ALTER: Final = cluster(Operation.ALTER)


def describe_users(call: Call, request: Any, proceed: Proceed) -> Outcome:
    """DESCRIBE on the cluster; each user of a refused request has an answer without its name."""
    if _DESCRIBE.is_met(call, request):
        return proceed(request)
    results = [{**_REFUSAL, "user": "", "credential_infos": []} for _ in request.users or ()]
    return {**_REFUSAL, "results": results}


def alter_users(call: Call, request: Any, proceed: Proceed) -> Outcome:
    """ALTER on the cluster; each named user of a refused request has one answer."""
    if _ALTER.is_met(call, request):
        return proceed(request)
    names = dict.fromkeys(change.name for change in (*request.deletions, *request.upsertions))
    error = refusal(ResourceType.CLUSTER, has_message=True)
    return {"results": [{**error, "user": name} for name in names]}
