"""SASL on one connection: handshake, tokens, sessions, re-authentication (Kafka's SaslServerAuthenticator)."""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

from kio.schema.errors import ErrorCode

from sharelens.broker.errors import FrameError
from sharelens.broker.protocol.authentication import Reply
from sharelens.broker.protocol.error_answers import error_answer
from sharelens.broker.protocol.messages import (
    FRAME_SIZE,
    Request,
    UnsupportedVersionError,
    decode_in_steps,
    encode_answer,
)
from sharelens.broker.protocol.registry import ANONYMOUS, Answer, Api
from sharelens.broker.security.authentication.mechanism import Accepted, Challenge, Mechanism, Rejected, Unanswered
from sharelens.kafka_formats.messages.api_keys import ApiKey
from state_model.codec.steps import run

USER_TYPE: Final = "User:"
REAUTHENTICATION_INTERVAL_S: Final = 1.0
"""The shortest time between the starts of two re-authentications."""
CLOSE: Final = Reply(closes=True)

_API_VERSION = struct.Struct(">hh")


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslSettings:
    """SASL on a listener. `max_reauth_ms`: by mechanism, 0 for sessions without end."""

    mechanisms: Mapping[str, Mechanism]
    max_reauth_ms: Mapping[str, int]
    frame_bytes_max: int
    failure_delay_s: float
    wall_ms: Callable[[], int]
    monotonic_s: Callable[[], float]


class Phase(Enum):
    """What the client has to send next."""

    HANDSHAKE = auto()
    TOKEN = auto()
    """A token, as SaslAuthenticate or as bare frame."""
    FAILED = auto()
    """Whatever comes, the connection is closed."""
    REQUESTS = auto()


class SaslAuthenticator:
    """Authenticates the client of one connection (protocol.authentication.Authenticator)."""

    def __init__(self, settings: SaslSettings, apis: Mapping[int, Api]) -> None:
        self._settings = settings
        self._apis = apis
        self._phase = Phase.HANDSHAKE
        self._has_versions = False
        self._has_bare_tokens = False
        self._mechanism: Mechanism | None = None
        self._state: Any = None
        self._session_ms = 0
        self._ends_s: float | None = None
        self._begun_again_s: float | None = None
        self._has_authenticated = False
        self.principal = ANONYMOUS

    @property
    def is_complete(self) -> bool:
        """Whether the client has authenticated, under whatever name; it may be about to do so again."""
        return self._has_authenticated

    @property
    def frame_bytes_max(self) -> int:
        """The largest frame before the client has authenticated."""
        return self._settings.frame_bytes_max

    def receive(self, frame: bytes) -> Reply | None:
        """What a frame leads to; None when it is a request for the handlers. Raises FrameError."""
        match self._phase:
            case Phase.HANDSHAKE:
                return self._before_handshake(frame)
            case Phase.TOKEN:
                return self._bare_token(frame) if self._has_bare_tokens else self._token_request(frame)
            case Phase.FAILED:
                return CLOSE
            case Phase.REQUESTS:
                return self._after_authentication(frame)

    # Before authentication.

    def _before_handshake(self, frame: bytes) -> Reply | None:
        api_key, version = _api_of(frame)
        if api_key == ApiKey.SASL_HANDSHAKE and self._is_supported(api_key, version):
            return self._handshake(self._decode(frame))
        if api_key != ApiKey.API_VERSIONS:
            return CLOSE
        if self._is_supported(api_key, version):
            if self._has_versions:
                return CLOSE
            self._has_versions = True
        return None

    def _handshake(self, request: Request) -> Reply:
        name = request.body.mechanism
        mechanism = self._settings.mechanisms.get(name)
        error = ErrorCode.none if mechanism is not None else ErrorCode.unsupported_sasl_mechanism
        pieces = _encode(request, {"error_code": error, "mechanisms": list(self._settings.mechanisms)})
        if mechanism is None:
            return self._failure(pieces)
        if self._mechanism is not None and self._mechanism.name != name:
            self._phase = Phase.FAILED
        else:
            self._phase = Phase.TOKEN
            self._mechanism, self._state = mechanism, None
            self._has_bare_tokens = request.api_version == 0
        return Reply(pieces=pieces)

    def _token_request(self, frame: bytes) -> Reply:
        try:
            request = self._decode(frame)
        except UnsupportedVersionError as error:
            raise FrameError(str(error)) from error
        if request.api_key != ApiKey.SASL_AUTHENTICATE:
            code = ErrorCode.illegal_sasl_state
            refusal = error_answer(request.api_key, request.api_version, request.body, code)
            return self._failure(_encode(request, refusal))
        answer = self._step(request.body.auth_bytes)
        if isinstance(answer, Unanswered):
            return self._failure(())
        if isinstance(answer, Rejected):
            refusal = {"error_code": ErrorCode.sasl_authentication_failed, "error_message": answer.message}
            return self._failure(_encode(request, {**refusal, "auth_bytes": b""}))
        success: dict[str, Any] = {"error_code": ErrorCode.none, "error_message": "", "auth_bytes": answer.token}
        if isinstance(answer, Accepted) and request.api_version > 0:
            success["session_lifetime"] = self._session_ms
        return Reply(pieces=_encode(request, success))

    def _bare_token(self, token: bytes) -> Reply:
        answer = self._step(token)
        if isinstance(answer, Rejected | Unanswered):
            return self._failure(())
        return Reply(pieces=(FRAME_SIZE.pack(len(answer.token)), answer.token))

    def _step(self, token: bytes) -> Challenge | Accepted | Rejected | Unanswered:
        """The mechanism's answer to a token, with the texts and the checks that all mechanisms share."""
        assert self._mechanism is not None
        self._state, answer = self._mechanism.step(self._state, token)
        if isinstance(answer, Rejected) and answer.message is None:
            return Rejected(message=self._general_text())
        if not isinstance(answer, Accepted):
            return answer
        principal = f"{USER_TYPE}{answer.user}"
        if self.is_complete and principal != self.principal:
            return Rejected(
                message="Cannot change principals during re-authentication from "
                f"{_dotted(self.principal)}: {_dotted(principal)}"
            )
        self.principal = principal
        self._has_authenticated = True
        self._phase = Phase.REQUESTS
        self._session_ms = self._lifetime_ms(answer)
        self._ends_s = self._settings.monotonic_s() + self._session_ms / 1000 if self._session_ms else None
        return answer

    def _general_text(self) -> str:
        assert self._mechanism is not None
        during = "re-authentication" if self.is_complete else "authentication"
        return (
            f"Authentication failed during {during} due to invalid credentials with SASL mechanism "
            f"{self._mechanism.name}"
        )

    def _lifetime_ms(self, accepted: Accepted) -> int:
        """How long the session lasts; 0 without an end."""
        assert self._mechanism is not None
        limits = [self._settings.max_reauth_ms.get(self._mechanism.name, 0)]
        if accepted.expires_at_ms is not None:
            limits.append(max(1, accepted.expires_at_ms - self._settings.wall_ms()))
        return min((limit for limit in limits if limit > 0), default=0)

    def _failure(self, pieces: tuple[Any, ...]) -> Reply:
        self._phase = Phase.FAILED
        return Reply(pieces=pieces, closes=True, delay_s=self._settings.failure_delay_s)

    # After authentication.

    def _after_authentication(self, frame: bytes) -> Reply | None:
        if self._ends_s is None:
            return None
        now_s = self._settings.monotonic_s()
        api_key, version = _api_of(frame)
        if api_key == ApiKey.SASL_HANDSHAKE and self._is_supported(api_key, version) and self._may_begin_again(now_s):
            self._begun_again_s = now_s
            return self._handshake(self._decode(frame))
        return CLOSE if now_s >= self._ends_s else None

    def _may_begin_again(self, now_s: float) -> bool:
        return self._begun_again_s is None or now_s - self._begun_again_s >= REAUTHENTICATION_INTERVAL_S

    # Requests and answers.

    def _is_supported(self, api_key: int, version: int) -> bool:
        api = self._apis.get(api_key)
        return api is not None and api.has(version)

    def _decode(self, frame: bytes) -> Request:
        return run(decode_in_steps(frame, self._is_supported))


def _encode(request: Request, answer: Answer) -> tuple[Any, ...]:
    return tuple(encode_answer(request.api_key, request.api_version, request.correlation_id, answer))


def _api_of(frame: bytes) -> tuple[int, int]:
    if len(frame) < _API_VERSION.size:
        raise FrameError(f"a request of {len(frame)} bytes has no header")
    api_key, version = _API_VERSION.unpack_from(frame)
    return api_key, version


def _dotted(principal: str) -> str:
    return principal.replace(":", ".", 1)
