"""Why a broker can't be talked to, in words: what the exceptions of connections mean, and what to do."""

import ssl
from collections.abc import Iterator

from kafka import errors as kafka_errors

from sharelens.kafka_live.command_config import CommandConfig

HOST_MISMATCHES = frozenset({62, 64})
EXPIRED, NOT_YET_VALID = 10, 9
"""OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH, IP_ADDRESS_MISMATCH, CERT_HAS_EXPIRED, CERT_NOT_YET_VALID."""
FINAL = (
    ssl.SSLCertVerificationError,
    kafka_errors.SaslAuthenticationFailedError,
    kafka_errors.UnsupportedSaslMechanismError,
    kafka_errors.IllegalSaslStateError,
    kafka_errors.InvalidReceiveError,
)
"""InvalidReceiveError: a TLS listener's alert to a request without TLS, read as the length of a response."""
LISTENER_HINT = "give HOST:PORT of a listener, and look whether the broker runs there"
DISCONNECTED = "socket disconnected"
"""What the library says of a closed connection, also where the broker answered before (that answer is lost)."""


def is_final(error: BaseException) -> bool:
    """Whether another try would fail in the same way."""
    return any(isinstance(each, FINAL) for each in _chain(error))


def explain(error: BaseException, config: CommandConfig) -> str:
    """What went wrong and what to do, in a line without secrets."""
    chain = list(_chain(error))
    for each in chain:
        text = _of_tls(each, config) if config.has_tls else _of_plaintext(each)
        if text := _of_sasl(each, config) or text:
            return text
    reason = next((str(each) for each in chain if str(each)), type(error).__name__)
    hint = LISTENER_HINT
    if not config.has_sasl:
        hint += "; the listener may require TLS or SASL, which --command-config names"
    return f"the cluster does not answer ({reason}); {hint}"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception, and those that it was raised from or holds."""
    pending, seen_ids = [error], set()
    while pending:
        each = pending.pop(0)
        if id(each) not in seen_ids:
            seen_ids.add(id(each))
            yield each
            inner = (*each.args, each.__cause__, each.__context__)
            pending += [other for other in inner if isinstance(other, BaseException)]


def _of_tls(error: BaseException, config: CommandConfig) -> str | None:
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = error.verify_message
        if error.verify_code in HOST_MISMATCHES:
            return (
                f"the broker's certificate is for another host name ({reason}); give a name that it holds, or an empty "
                "ssl.endpoint.identification.algorithm in --command-config"
            )
        if error.verify_code in (EXPIRED, NOT_YET_VALID):
            return f"the broker's certificate is not valid now ({reason}); renew it, or correct the clock"
        return (
            f"the broker's certificate is from an unknown CA ({reason}); give the CA's certificate with "
            "ssl.truststore.location (PEM) in --command-config"
        )
    if isinstance(error, ssl.SSLError) and "ALERT" in (error.reason or ""):
        return (
            f"the broker refuses the TLS connection ({error.reason}); give a certificate that it accepts with "
            "ssl.keystore.location (PEM) in --command-config, if it requires one"
        )
    if isinstance(error, ssl.SSLError | ConnectionResetError | BrokenPipeError):
        return (
            "the listener does not answer in TLS; give the port of a TLS listener, or another security.protocol in "
            "--command-config"
        )
    return None


def _of_plaintext(error: BaseException) -> str | None:
    if isinstance(error, kafka_errors.InvalidReceiveError):
        return (
            "the listener answers with bytes that are no response of Kafka, as a TLS listener does; give "
            "--command-config FILE with security.protocol=SSL or SASL_SSL, or the port of another listener"
        )
    return None


def _of_sasl(error: BaseException, config: CommandConfig) -> str | None:
    if isinstance(error, kafka_errors.SaslAuthenticationFailedError):
        subject = "the token" if config.client_credentials is not None else "the user or the password"
        return f"the broker refuses {subject} ({_message(error)}); correct sasl.jaas.config in --command-config"
    if config.has_sasl and DISCONNECTED in error.args:
        listener, remedy = ("", "") if config.has_tls else (", or a TLS listener", " or security.protocol")
        return (
            f"the broker closes the connection, as one does that refuses the user or the password{listener}, or lacks "
            f"sasl.mechanism={config.mechanism}; correct sasl.jaas.config{remedy} in --command-config, or look whether "
            "the broker runs there"
        )
    if isinstance(error, kafka_errors.UnsupportedSaslMechanismError):
        return (
            f"the listener does not take sasl.mechanism={config.mechanism}; give another mechanism, or the port of "
            "another listener"
        )
    if isinstance(error, kafka_errors.IllegalSaslStateError):
        return "the listener has no SASL; give security.protocol=PLAINTEXT or SSL, or the port of another listener"
    return None


def _message(error: BaseException) -> str:
    """The text of the broker, of one line."""
    text = str(error.args[0]) if error.args else type(error).__name__
    return " ".join(text.split())[:200]
