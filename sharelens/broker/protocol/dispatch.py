"""From a frame to the pieces of its answer: decode, find the handler, encode."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Mapping
from typing import Any, cast

from kio.schema.errors import ErrorCode

from sharelens.broker.errors import FrameError
from sharelens.broker.protocol.messages import (
    OversizedRequestError,
    Request,
    UnsupportedVersionError,
    decode_in_steps,
    encode_answer,
    encode_in_steps,
    error_response,
)
from sharelens.broker.protocol.registry import Answer, Api, ClientConnection, RequestContext
from sharelens.broker.protocol.steps import run_in_turns
from sharelens.kafka_formats.messages.api_keys import ApiKey
from state_model.codec.steps import Steps
from state_model.codec.writers import Bytes

_log = logging.getLogger(__name__)

Pieces = list[Bytes]


class Dispatcher:
    """Answers frames with the handlers of a table."""

    def __init__(self, broker: Any, apis: Mapping[int, Api], requests: Counter[int] | None = None) -> None:
        """requests: counts the requests by API key."""
        self._requests: Counter[int] = Counter() if requests is None else requests
        self._broker = broker
        self._apis = apis
        self._large_requests = asyncio.Lock()

    def dispatch(
        self, frame: bytes, connection: ClientConnection, client_host: str
    ) -> Pieces | Awaitable[Pieces | None] | None:
        """The pieces of the response frame, at once or when they are there; None when the request wants no response.

        A request with many array elements is handled in steps, one in each turn of the loop.

        Raises:
            FrameError: the bytes are no request of a registered API; the connection must be closed.
        """
        steps = self._respond(frame, connection, client_host)
        try:
            next(steps)
        except StopIteration as end:
            return cast(Pieces | Awaitable[Pieces | None] | None, end.value)
        return self._finish(steps)

    async def _finish(self, steps: Steps[Pieces | Awaitable[Pieces | None] | None]) -> Pieces | None:
        """The rest of a large request. Of several such requests only one works at a time, to keep turns short."""
        async with self._large_requests:
            outcome = await run_in_turns(steps)
        return outcome if outcome is None or isinstance(outcome, list) else await outcome

    def _respond(
        self, frame: bytes, connection: ClientConnection, client_host: str
    ) -> Steps[Pieces | Awaitable[Pieces | None] | None]:
        try:
            request = yield from decode_in_steps(frame, self._is_supported, self._elements_max)
        except UnsupportedVersionError as error:
            return self._refuse_version(error)
        except OversizedRequestError as error:
            return _refuse_size(error)
        self._requests[request.api_key] += 1
        context = RequestContext(
            api_key=request.api_key,
            api_version=request.api_version,
            client_id=request.client_id,
            client_host=client_host,
            connection=connection,
        )
        try:
            outcome = self._apis[request.api_key].handler(self._broker, request.body, context)
        except FrameError:
            raise
        except Exception as error:
            return self._failed(request, error)
        if outcome is None or isinstance(outcome, Mapping):
            return (yield from self._encode(request, outcome))
        return self._encode_later(request, outcome)

    def _is_supported(self, api_key: int, version: int) -> bool:
        api = self._apis.get(api_key)
        return api is not None and api.has(version)

    def _elements_max(self, api_key: int) -> int:
        return self._apis[api_key].elements_max

    def _refuse_version(self, error: UnsupportedVersionError) -> Pieces:
        """ApiVersions of an unknown version gets an answer of version 0, as in Kafka, so that the client can retry."""
        api = self._apis.get(ApiKey.API_VERSIONS)
        if error.api_key != ApiKey.API_VERSIONS or api is None:
            raise FrameError(str(error)) from error
        versions = {"api_key": api.key, "min_version": api.first_version, "max_version": api.last_version}
        answer = {"error_code": ErrorCode.unsupported_version, "api_keys": [versions]}
        return encode_answer(ApiKey.API_VERSIONS, 0, error.correlation_id, answer)

    def _encode(self, request: Request, answer: Answer | None) -> Steps[Pieces | None]:
        if answer is None:
            return None
        try:
            return (yield from encode_in_steps(request.api_key, request.api_version, request.correlation_id, answer))
        except FrameError:
            raise
        except Exception as error:
            return self._failed(request, error)

    async def _encode_later(self, request: Request, outcome: Awaitable[Answer | None]) -> Pieces | None:
        try:
            answer = await outcome
        except FrameError:
            raise
        except Exception as error:
            return self._failed(request, error)
        steps = self._encode(request, answer)
        try:
            next(steps)
        except StopIteration as end:
            return cast(Pieces | None, end.value)
        async with self._large_requests:
            return await run_in_turns(steps)

    def _failed(self, request: Request, error: Exception) -> Pieces:
        """UNKNOWN_SERVER_ERROR where the response has room for it; else the connection is closed."""
        _log.error("API %d version %d failed", request.api_key, request.api_version, exc_info=error)
        answer = error_response(request.api_key, request.api_version, ErrorCode.unknown_server_error)
        if answer is None:
            raise FrameError(f"API {request.api_key} failed: {error}") from error
        return encode_answer(request.api_key, request.api_version, request.correlation_id, answer)


def _refuse_size(error: OversizedRequestError) -> Pieces:
    """INVALID_REQUEST where the response has room for it; else the connection is closed."""
    answer = error_response(error.api_key, error.api_version, ErrorCode.invalid_request, str(error))
    if answer is None:
        raise error
    _log.info("refused: %s", error)
    return encode_answer(error.api_key, error.api_version, error.correlation_id, answer)
