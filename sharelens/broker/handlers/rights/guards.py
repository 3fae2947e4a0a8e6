"""Guards: checks of rights around a handler, which refuse a request, parts of it, or parts of its answer.

A guard sees the request before the handler: it answers itself, or passes on the request, whole or without its refused
parts, and adds the refusals to the answer.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Final, Protocol

from kio.schema.errors import ErrorCode

from sharelens.broker.config.settings import Settings
from sharelens.broker.errors import FrameError
from sharelens.broker.protocol.error_answers import error_answer, list_errors
from sharelens.broker.protocol.messages import topic_id_text
from sharelens.broker.protocol.registry import Answer, RequestContext
from sharelens.broker.protocol.steps import LazyArray
from sharelens.broker.security.authorization.entries import CLUSTER_NAME, Operation, ResourceType
from sharelens.broker.security.authorization.rights import Rights
from sharelens.broker.storage.catalog import Catalog

Outcome = Answer | Awaitable[Answer | None] | None
Proceed = Callable[[Any], Outcome]
"""Handles a request."""
Error = Mapping[str, Any]
"""error_code, and what else stands beside it in the answer."""

CODES: Final = {
    ResourceType.TOPIC: ErrorCode.topic_authorization_failed,
    ResourceType.GROUP: ErrorCode.group_authorization_failed,
    ResourceType.CLUSTER: ErrorCode.cluster_authorization_failed,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.transactional_id_authorization_failed,
}
MESSAGES: Final = {
    ResourceType.TOPIC: "Topic authorization failed.",
    ResourceType.GROUP: "Group authorization failed.",
    ResourceType.CLUSTER: "Cluster authorization failed.",
    ResourceType.TRANSACTIONAL_ID: "Transactional Id authorization failed.",
}
"""Kafka's messages of these codes (org.apache.kafka.common.protocol.Errors)."""
NO_ANSWER: Final = "a request that wants no answer was refused for lack of a right"
"""Why a connection is closed: there is no other way to say so."""


class GuardedBroker(Protocol):
    """The parts of the broker that guards read."""

    @property
    def config(self) -> Settings:
        """The configuration of the broker."""

    @property
    def catalog(self) -> Catalog:
        """The topics that exist."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request's surroundings for guards."""

    broker: GuardedBroker
    context: RequestContext

    @property
    def rights(self) -> Rights:
        """What the client may do."""
        return self.context.rights


Guard = Callable[[Call, Any, Proceed], Outcome]


def refusal(resource_type: ResourceType, *, has_message: bool = False, **fields: Any) -> dict[str, Any]:
    """The error for a missing right to a resource of a type; `fields` stand beside it."""
    message = {"error_message": MESSAGES[resource_type]} if has_message else {}
    return {"error_code": CODES[resource_type], **message, **fields}


def chain(*guards: Guard) -> Guard:
    """All guards, one after the other."""

    def after(guard: Guard, following: Guard) -> Guard:
        return lambda call, request, proceed: guard(
            call, request, lambda allowed_request: following(call, allowed_request, proceed)
        )

    return reduce(after, guards)


def everyone(call: Call, request: Any, proceed: Proceed) -> Outcome:
    """No right is needed."""
    return proceed(request)


# The whole request


@dataclass(frozen=True, slots=True)
class Need:
    """A right to one resource: the cluster, or the one that a field of the request names."""

    operation: Operation
    resource_type: ResourceType
    field: str = ""

    def is_met(self, call: Call, request: Any) -> bool:
        """Whether the client has the right."""
        name = getattr(request, self.field) if self.field else CLUSTER_NAME
        return call.rights.has(self.operation, self.resource_type, name or "")


def cluster(operation: Operation) -> Need:
    """A right to the cluster."""
    return Need(operation, ResourceType.CLUSTER)


def group(operation: Operation) -> Need:
    """A right to the group of the request."""
    return Need(operation, ResourceType.GROUP, "group_id")


def transactional_id(operation: Operation, field: str = "transactional_id") -> Need:
    """A right to the transactional id of the request."""
    return Need(operation, ResourceType.TRANSACTIONAL_ID, field)


def require_any(*needs: Need, has_message: bool = False, **fields: Any) -> Guard:
    """Without one of the rights the whole request is refused, by the code of the first one.

    has_message, fields: what stands beside the code, where the response has room for it.
    """
    error = refusal(needs[0].resource_type, has_message=has_message, **fields)

    def guard(call: Call, request: Any, proceed: Proceed) -> Outcome:
        if any(need.is_met(call, request) for need in needs):
            return proceed(request)
        return refused(call, request, error)

    return guard


def refused(call: Call, request: Any, error: Error) -> Answer:
    """The answer that refuses a whole request: at its top, else in each of its parts."""
    beside = {name: value for name, value in error.items() if name != "error_code"}
    return error_answer(call.context.api_key, call.context.api_version, request, error["error_code"], **beside)


# Parts of the request

PartError = Callable[[Call, Any, Any], Error | None]
"""(call, request, element of a list of the request): its error, None when the client may have an answer."""


def each(list_name: str, error_of: PartError, *, is_always_handled: bool = False) -> Guard:
    """Refuses elements of a list of the request; the handler gets the others, and no call when there are none.

    is_always_handled: call the handler also for none; an error at the top of its answer then replaces the refusals.
    """

    def guard(call: Call, request: Any, proceed: Proceed) -> Outcome:
        errors = [(item, error_of(call, request, item)) for item in getattr(request, list_name, None) or ()]
        refusals = [(item, error) for item, error in errors if error is not None]
        if not refusals:
            return proceed(request)
        allowed_items = tuple(item for item, error in errors if error is None)
        version = call.context.api_version
        name, answers = list_errors(call.context.api_key, version, list_name, refusals)
        outcome = (
            proceed(replace(request, **{list_name: allowed_items}))
            if allowed_items or is_always_handled
            else {name: []}
        )
        return changed(outcome, lambda answer: followed_by(answer, name, answers), is_refused=True)

    return guard


def topics(
    list_name: str,
    operation: Operation,
    *,
    alternative: Need | None = None,
    has_message: bool = False,
    is_always_handled: bool = False,
    **fields: Any,
) -> Guard:
    """Refuses topics of the request without a right to them; an unknown topic id is the handler's to refuse.

    alternative: a right to the cluster that suffices for all of them. fields: what stands beside each error code.
    """
    error = refusal(ResourceType.TOPIC, has_message=has_message, **fields)

    def error_of(call: Call, request: Any, topic: Any) -> Error | None:
        name = topic_name(call, topic)
        return None if name is None or call.rights.topic(operation, name) else error

    guard = each(list_name, error_of, is_always_handled=is_always_handled)
    if alternative is None:
        return guard

    def unless(call: Call, request: Any, proceed: Proceed) -> Outcome:
        if alternative.is_met(call, request):
            return proceed(request)
        return guard(call, request, proceed)

    return unless


def named(list_name: str, operation: Operation, resource_type: ResourceType, **fields: Any) -> Guard:
    """Refuses names of a plain list of the request without a right to them."""
    error = refusal(resource_type, **fields)
    return each(
        list_name, lambda call, request, name: None if call.rights.has(operation, resource_type, name) else error
    )


def name_of_id(call: Call, topic_id: str) -> str | None:
    """The name of the topic with an id; None for an unknown one."""
    topic = call.broker.catalog.by_id(topic_id)
    return None if topic is None else topic.name


def topic_name(call: Call, topic: Any) -> str | None:
    """The name of a requested topic, which has its name or its id; None for an unknown id.

    Beside an id no name counts: a right to the name is none to the topic of the id.
    """
    topic_id = topic_id_text(getattr(topic, "topic_id", None))
    if topic_id is not None:
        return name_of_id(call, topic_id)
    names = (getattr(topic, field, None) for field in ("name", "topic", "topic_name"))
    return next((name for name in names if name is not None), None)


# Answers


def changed(outcome: Outcome, change: Callable[[Answer], Answer], *, is_refused: bool = False) -> Outcome:
    """The outcome with a changed answer, at once or later.

    is_refused: whether parts were refused; a request that wants no answer then loses its connection, as in Kafka.
    """
    if outcome is None:
        if is_refused:
            raise FrameError(NO_ANSWER)
        return None
    if isinstance(outcome, Mapping):
        return change(outcome)

    async def later() -> Answer | None:
        answer = await outcome
        return None if answer is None else change(answer)

    return later()


def followed_by(answer: Answer, list_name: str, extra_items: Iterable[Any]) -> Answer:
    """The answer with more elements in a list; unchanged when it refuses the whole request."""
    if answer.get("error_code"):
        return answer
    return {**answer, list_name: joined(answer.get(list_name, ()), list(extra_items))}


def joined(first: Sequence[Any], second: Sequence[Any]) -> Sequence[Any]:
    """Two lists of an answer as one; the elements of a lazy one stay lazy."""
    places = [(part, index) for part in (first, second) for index in range(len(part))]
    return LazyArray(lambda place: place[0][place[1]], places)


def keep(list_name: str, condition: Callable[[Call, Answer], bool]) -> Guard:
    """Leaves elements out of a list of the answer."""

    def guard(call: Call, request: Any, proceed: Proceed) -> Outcome:
        def without_others(answer: Answer) -> Answer:
            return {**answer, list_name: [part for part in answer.get(list_name, ()) if condition(call, part)]}

        return changed(proceed(request), without_others)

    return guard


def change_each(list_name: str, change: Callable[[Call, Any, Answer], Answer]) -> Guard:
    """Changes each element of a list of the answer: (call, request, element)."""

    def guard(call: Call, request: Any, proceed: Proceed) -> Outcome:
        def with_changes(answer: Answer) -> Answer:
            parts = LazyArray(lambda part: change(call, request, part), answer.get(list_name, ()))
            return {**answer, list_name: parts}

        return changed(proceed(request), with_changes)

    return guard
