"""How to connect to a listener with TLS or SASL: the properties of Kafka's own tools (--command-config).

Secrets stand in no message and in no repr.
"""

import re
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sharelens.kafka_formats import jaas
from sharelens.kafka_live import oauth_config
from sharelens.kafka_live.oauth import ClientCredentials, TokenProvider
from state_model.errors import UsageError

TIMEOUT_MS = 30_000
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
OAUTHBEARER = "OAUTHBEARER"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", OAUTHBEARER)
PEM = "PEM"
LARGEST_TIMEOUT_MS = 2**31 - 1
READ = frozenset(
    {
        "security.protocol",
        "ssl.truststore.location",
        "ssl.truststore.type",
        "ssl.keystore.location",
        "ssl.keystore.type",
        "ssl.key.password",
        "ssl.endpoint.identification.algorithm",
        "sasl.mechanism",
        "sasl.jaas.config",
        "sasl.login.callback.handler.class",
        *oauth_config.READ,
        "client.rack",
        "request.timeout.ms",
    }
)
INLINE = "write the PEM text into a file and name it with {instead}"
PEM_ALONE = "PEM files have no such password; leave it out (that of an encrypted key is ssl.key.password)"
NO_LOGIN = "leave it out; name and password of PLAIN and SCRAM stand in sasl.jaas.config"
OPENSSL = "leave it out; TLS 1.2 and later are taken, with the ciphers of OpenSSL"
UNSUPPORTED = {
    "ssl.truststore.certificates": INLINE.format(instead="ssl.truststore.location"),
    "ssl.keystore.key": INLINE.format(instead="ssl.keystore.location"),
    "ssl.keystore.certificate.chain": INLINE.format(instead="ssl.keystore.location"),
    "ssl.truststore.password": PEM_ALONE,
    "ssl.keystore.password": PEM_ALONE,
    **dict.fromkeys(("ssl.protocol", "ssl.enabled.protocols", "ssl.cipher.suites", "ssl.provider"), OPENSSL),
    **dict.fromkeys(
        ("ssl.engine.factory.class", "ssl.keymanager.algorithm", "ssl.trustmanager.algorithm", "security.providers"),
        OPENSSL,
    ),
    "sasl.login.class": NO_LOGIN,
    **dict.fromkeys(("sasl.client.callback.handler.class", "sasl.kerberos.service.name"), NO_LOGIN),
    "config.providers": "write the values themselves into the file",
}
"""Keys of Kafka's clients that change how to connect, and what to do in place of them."""
WITHOUT_EFFECT = re.compile(
    r"bootstrap\.servers|client\.(id|dns\.lookup)|retries|retry\.backoff(\.max)?\.ms|reconnect\.backoff(\.max)?\.ms|"
    r"default\.api\.timeout\.ms|connections\.max\.idle\.ms|socket\.connection\.setup\.timeout(\.max)?\.ms|"
    r"(send|receive)\.buffer\.bytes|metadata\..*|metrics?\..*|auto\.include\.jmx\.reporter|enable\.metrics\.push|"
    r"group\.id|(key|value)\.(de)?serializer|auto\.offset\.reset|isolation\.level|enable\.auto\.commit|"
    r"sasl\.login\.(refresh|retry|connect)\..*|ssl\.secure\.random\.implementation"
)
"""Keys of Kafka's clients that nothing depends on here: they are accepted and left alone."""
LIKE_A_KEY = re.compile(r"(ssl|sasl|security|client|request)(\.[a-z]+)+")
"""Texts that are shown as unknown keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandConfig:
    """How to connect. `truststore`, `keystore`: paths of PEM files, None: the system's CAs, no certificate of ours.

    `rack`: where records may come from a follower (KIP-392); empty: from leaders alone.
    """

    protocol: str = "PLAINTEXT"
    mechanism: str | None = None
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    truststore: str | None = None
    keystore: str | None = None
    key_password: str | None = field(default=None, repr=False)
    client_credentials: ClientCredentials | None = None
    checks_host: bool = True
    rack: str = ""
    timeout_ms: int = TIMEOUT_MS

    @property
    def has_tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def has_sasl(self) -> bool:
        """Whether the client says who it is with a name and a password."""
        return self.protocol.startswith("SASL_")

    def client_configs(self) -> dict[str, Any]:
        """The configs of kafka-python's connection.

        Raises:
            ClusterError: the token endpoint does not answer, or refuses the client.
            UsageError: a PEM file can't be read, or the password of its key is wrong.
        """
        configs: dict[str, Any] = {"security_protocol": self.protocol, "request_timeout_ms": self.timeout_ms}
        if self.has_tls:
            configs["ssl_context"] = self._ssl_context()
        if self.client_credentials is not None:
            provider = TokenProvider(self.client_credentials)
            provider.token()  # a refusal is said before there is a connection
            configs |= {"sasl_mechanism": self.mechanism, "sasl_oauth_token_provider": provider}
        elif self.has_sasl:
            user = self.user or ""
            if self.mechanism != "PLAIN":  # names in SCRAM's messages (RFC 5802), which the library sends as they are
                user = user.replace("=", "=3D").replace(",", "=2C")
            configs |= {"sasl_mechanism": self.mechanism, "sasl_plain_username": user}
            configs["sasl_plain_password"] = self.password
        return configs

    def _ssl_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.sslsocket_class = _Socket
        context.check_hostname = self.checks_host
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # whatever the truststore holds is trusted, as in Java
        if self.truststore is None:
            context.load_default_certs()
        else:
            try:
                context.load_verify_locations(self.truststore)
            except OSError as error:
                raise _unreadable("ssl.truststore.location", self.truststore, error, "PEM certificates") from None
        if self.keystore is not None:
            try:  # the empty password: OpenSSL would ask for one at the terminal
                context.load_cert_chain(self.keystore, password=self.key_password or "")
            except (OSError, ValueError) as error:
                expected = "a private key and its certificate chain as PEM, and ssl.key.password if it is encrypted"
                raise _unreadable("ssl.keystore.location", self.keystore, error, expected) from None
        return context


class _Socket(ssl.SSLSocket):
    """A socket that is closed when its handshake fails; the library leaves it open."""

    def do_handshake(self, block: bool = False) -> None:
        try:
            super().do_handshake(block)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except OSError:
            self.close()
            raise


PLAINTEXT = CommandConfig()


def unknown_lines(lines: Iterable[tuple[int, str, str]]) -> list[str]:
    """What no client of Kafka has, or what means nothing for a connection, of (line, key, value); in order.

    A line that does not begin as Kafka's keys do is only numbered: it may be a password.
    """
    return [
        key if value and LIKE_A_KEY.fullmatch(key) else f"line {number}"
        for number, key, value in lines
        if key not in READ | UNSUPPORTED.keys() and not WITHOUT_EFFECT.fullmatch(key)
    ]


def command_config(properties: Mapping[str, str], where: str) -> CommandConfig:
    """How to connect by Kafka's properties; `where` names their file in messages.

    Raises:
        UsageError: a property is not supported, or has a value that it can't have; the message names the key.
    """
    values = {key: value.strip() for key, value in properties.items()}
    for key in values:
        is_other = key.startswith("sasl.oauthbearer.") and key not in READ
        if instead := UNSUPPORTED.get(key, oauth_config.OTHER if is_other else ""):
            raise UsageError(f"{where}: {key} is not supported; {instead}")
    protocol = _one_of(values, "security.protocol", PROTOCOLS, "PLAINTEXT", where)
    stores = {name: _store(values, name, where) for name in ("truststore", "keystore")}
    mechanism, user, password, client_credentials = None, None, None, None
    if protocol.startswith("SASL_"):
        mechanism = _one_of(values, "sasl.mechanism", MECHANISMS, "GSSAPI", where)
        if mechanism == OAUTHBEARER:
            options = _jaas_options(values.get("sasl.jaas.config", ""), mechanism, oauth_config.FORM, where)
            client_credentials = oauth_config.client_credentials(
                values, options, stores["truststore"], _timeout_ms(values, oauth_config.TIMEOUT, where), where
            )
        else:
            user, password = _credentials(values.get("sasl.jaas.config", ""), mechanism, where)
    algorithm = values.get("ssl.endpoint.identification.algorithm", "https")
    if algorithm.lower() not in ("https", ""):
        raise UsageError(
            f"{where}: ssl.endpoint.identification.algorithm takes https, or nothing for no check of names"
        )
    return CommandConfig(
        protocol=protocol,
        mechanism=mechanism,
        user=user,
        password=password,
        truststore=stores["truststore"],
        keystore=stores["keystore"],
        key_password=values.get("ssl.key.password"),
        checks_host=algorithm != "",
        client_credentials=client_credentials,
        rack=values.get("client.rack", ""),
        timeout_ms=_timeout_ms(values, "request.timeout.ms", where),
    )


def _one_of(values: Mapping[str, str], key: str, allowed: tuple[str, ...], default: str, where: str) -> str:
    value = values.get(key, default).upper()
    if value not in allowed:
        origin = "" if key in values else " (Kafka's default)"
        raise UsageError(f"{where}: {key}={value[:40]!r}{origin} is not supported; give {', '.join(allowed)}")
    return value


def _store(values: Mapping[str, str], name: str, where: str) -> str | None:
    """The path of a store, which must be of type PEM."""
    location = values.get(f"ssl.{name}.location")
    kind = values.get(f"ssl.{name}.type", "JKS" if location else PEM).upper()
    if kind != PEM:
        raise UsageError(
            f"{where}: ssl.{name}.type={kind[:40]!r} is not supported (without the key it is JKS); "
            f"convert the store with openssl, and give ssl.{name}.type=PEM"
        )
    return location or None


def _timeout_ms(values: Mapping[str, str], key: str, where: str) -> int:
    text = values.get(key)
    if text is None:
        return TIMEOUT_MS
    if not re.fullmatch(r"[0-9]{1,10}", text) or not 1 <= int(text) <= LARGEST_TIMEOUT_MS:
        raise UsageError(f"{where}: {key} is no number of milliseconds from 1 to {LARGEST_TIMEOUT_MS}")
    return int(text)


def _credentials(value: str, mechanism: str, where: str) -> tuple[str, str]:
    """Name and password."""
    key, form = f"{where}: sasl.jaas.config", 'username="NAME" password="PASSWORD"'
    options = _jaas_options(value, mechanism, form, where)
    if not options.get("username") or not options.get("password"):
        raise UsageError(f"{key} lacks username or password; give {form}")
    if set(options) - {"username", "password"}:
        raise UsageError(f"{key} has other options than username and password, which are not supported; give {form}")
    return options["username"], options["password"]


def _jaas_options(value: str, mechanism: str, form: str, where: str) -> dict[str, str]:
    """The options of the login module, which `form` shows; the messages show nothing of the value."""
    key = f"{where}: sasl.jaas.config"
    form = f"give {jaas.MODULES[mechanism]} required {form};"
    if not value:
        raise UsageError(f"{key} is missing; {form}")
    try:
        return jaas.module_options(value, mechanism)
    except jaas.JaasError as error:
        raise UsageError(f"{key} {error}; {form}") from error


def _unreadable(key: str, path: str, error: Exception, expected: str) -> UsageError:
    reason = error.strerror if isinstance(error, OSError) and not isinstance(error, ssl.SSLError) else None
    return UsageError(
        f"--command-config: {key}: can't use {path} ({reason or 'its content or its password'}); give {expected}"
    )
