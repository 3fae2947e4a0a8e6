"""SaslHandshake 0 and 1, SaslAuthenticate 0 to 2 where there is nothing to authenticate.

Requests that authenticate a client are answered before handlers, by security.authentication.sasl.
"""

from typing import Any

from kio.schema.errors import ErrorCode

from sharelens.broker.protocol.registry import Answer, RequestContext, handles
from sharelens.kafka_formats.messages.api_keys import ApiKey


@handles(ApiKey.SASL_HANDSHAKE, (0, 1))
def sasl_handshake(broker: object, request: Any, context: RequestContext) -> Answer:
    """Refused: the listener has no SASL, or the client has authenticated and has no session that ends."""
    return {"error_code": ErrorCode.illegal_sasl_state, "mechanisms": []}


@handles(ApiKey.SASL_AUTHENTICATE, (0, 2))
def sasl_authenticate(broker: object, request: Any, context: RequestContext) -> Answer:
    """Refused, as a handshake."""
    return {
        "error_code": ErrorCode.illegal_sasl_state,
        "error_message": "SaslAuthenticate request received after successful authentication",
        "auth_bytes": b"",
    }
