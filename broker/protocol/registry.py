"""Who answers which API, in which versions. ApiVersions tells clients exactly this table."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

Answer = Mapping[str, Any]
"""Field names as in kio's response of the newest version (`throttle_time`, not `throttle_time_ms`); see messages.py."""


class ClientConnection(Protocol):
    """A client's connection, as handlers see it."""

    @property
    def id(self) -> int:
        """Unique while the broker runs."""

    def on_close(self, callback: Callable[[], None]) -> None:
        """Call `callback` once, when the connection has gone; at once when it has gone already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """What belongs to a request beside its body. `client_id` is empty when the client told none."""

    api_key: int
    api_version: int
    client_id: str
    client_host: str
    connection: ClientConnection


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

    def has(self, version: int) -> bool:
        """Whether a version is answered."""
        return self.first_version <= version <= self.last_version


_apis: dict[int, Api] = {}


def handles(api_key: int, versions: tuple[int, int]) -> Callable[[Handler], Handler]:
    """Register the decorated function as what answers an API in the inclusive range of versions."""

    def register(handler: Handler) -> Handler:
        first, last = versions
        assert first <= last, (api_key, versions)
        assert api_key not in _apis, f"API {api_key} has two handlers"
        _apis[int(api_key)] = Api(key=int(api_key), first_version=first, last_version=last, handler=handler)
        return handler

    return register


def registered() -> Mapping[int, Api]:
    """All that is registered, by API key."""
    return _apis
