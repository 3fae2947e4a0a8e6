"""The handlers of APIs and their versions. ApiVersions answers exactly this table."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from sharelens.broker.security.authorization.rights import EVERY_RIGHT, Rights
from sharelens.kafka_formats.messages.reader import ELEMENTS_MAX

ELEMENTS_MAX_AT_ONCE = 1 << 16
"""Array elements in a request whose handler works on all of them at once; a few tenths of a second."""

ANONYMOUS = "User:ANONYMOUS"
"""The principal of a client that has not authenticated (Kafka's KafkaPrincipal.ANONYMOUS)."""

Answer = Mapping[str, Any]
"""Field names as in kio's response of the newest version (`throttle_time`, not `throttle_time_ms`); see messages.py."""


class ClientConnection(Protocol):
    """The interface of a client's connection for handlers."""

    @property
    def id(self) -> int:
        """Unique while the broker runs."""

    @property
    def principal(self) -> str:
        """Who the client is, as TYPE:NAME; ANONYMOUS without authentication."""

    @property
    def listener(self) -> str:
        """The name of the listener that the client connected to."""

    def on_close(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when the connection is closed; at once when it is closed already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """A request's header and connection. `client_id` is empty when the client sent none.

    rights: what the client may do, for handlers that need more than the check before them (handlers/rights).
    """

    api_key: int
    api_version: int
    client_id: str
    client_host: str
    connection: ClientConnection
    rights: Rights = EVERY_RIGHT


Handler = Callable[[Any, Any, RequestContext], "Answer | Awaitable[Answer | None] | None"]
"""(broker, request, context): an answer at once, or a coroutine that waits for it; None means no response.

A function that can answer at once should be no coroutine: the answer then costs no task.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """One API and the inclusive range of versions that its handler answers."""

    key: int
    first_version: int
    last_version: int
    handler: Handler
    elements_max: int = ELEMENTS_MAX

    def has(self, version: int) -> bool:
        """Whether the handler answers a version."""
        return self.first_version <= version <= self.last_version


_apis: dict[int, Api] = {}


def handles(
    api_key: int, versions: tuple[int, int], *, elements_max: int = ELEMENTS_MAX
) -> Callable[[Handler], Handler]:
    """Register the decorated function as the handler of an API in the inclusive range of versions.

    elements_max: array elements of a request; larger ones are refused.
    """

    def register(handler: Handler) -> Handler:
        first, last = versions
        assert first <= last, (api_key, versions)
        assert api_key not in _apis, f"API {api_key} has two handlers"
        _apis[int(api_key)] = Api(
            key=int(api_key), first_version=first, last_version=last, handler=handler, elements_max=elements_max
        )
        return handler

    return register


def registered() -> Mapping[int, Api]:
    """All registered APIs by key."""
    return _apis
