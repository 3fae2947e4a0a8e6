"""Creates what protects the connections of a listener, from the configuration and the users."""

import secrets
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from sharelens.broker.config.listeners import Listener
from sharelens.broker.config.security_keys import MECHANISMS, listener_key
from sharelens.broker.config.settings import Settings
from sharelens.broker.errors import ConfigError
from sharelens.broker.ports import Timers
from sharelens.broker.protocol.registry import registered
from sharelens.broker.protocol.tls import TlsChannel
from sharelens.broker.security.authentication.jaas import jaas_options, plain_users
from sharelens.broker.security.authentication.mechanism import Mechanism
from sharelens.broker.security.authentication.oauthbearer import OAUTHBEARER, OAuthBearer, Token
from sharelens.broker.security.authentication.plain import PLAIN, Plain
from sharelens.broker.security.authentication.sasl import SaslAuthenticator, SaslSettings
from sharelens.broker.security.authentication.scram import Scram
from sharelens.broker.security.authentication.unsecured_tokens import UnsecuredValidator
from sharelens.broker.storage.catalog import Catalog

if TYPE_CHECKING:
    from sharelens.broker.security.listener_tls import ListenerTls

NONCE_BYTES: Final = 24
SIGNED_TOKENS: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
OAUTH_PREFIX: Final = "sasl.oauthbearer."
STORE_KEYS: Final = ("ssl.keystore.", "ssl.truststore.", "ssl.key.password")


class ListenerSecurity:
    """TLS and SASL of one listener (protocol.authentication.ConnectionSecurity).

    Raises ConfigError when the configuration lacks what the listener's protocol needs.
    """

    def __init__(self, listener: Listener, settings: Settings, catalog: Catalog, timers: Timers) -> None:
        self._tls = _tls(listener, settings) if listener.protocol.has_tls else None
        self._sasl = _sasl_settings(listener.name, settings, catalog, timers) if listener.protocol.has_sasl else None

    def channel(self) -> TlsChannel | None:
        """The TLS of a new connection; None on a listener without TLS."""
        return None if self._tls is None else self._tls.channel()

    def authenticator(self) -> SaslAuthenticator | None:
        """Authenticates the client of a new connection; None on a listener without SASL."""
        return None if self._sasl is None else SaslAuthenticator(self._sasl, registered())

    def prepare_reload(self) -> Callable[[], None]:
        """Read the stores again; the returned function puts them to use for new connections. Raises ConfigError."""
        return _keep_stores if self._tls is None else self._tls.prepare_reload()


def _tls(listener: Listener, settings: Settings) -> "ListenerTls":
    # Only a broker with TLS loads cryptography.
    from sharelens.broker.security.listener_tls import ListenerTls

    return ListenerTls(listener, settings)


def _keep_stores() -> None:
    """A listener without TLS has no stores."""


def names_store(key: str, listener: str) -> bool:
    """Whether a configuration key is one of a listener's key store or trust store."""
    return key.startswith(tuple(listener_key(listener, name) for name in STORE_KEYS))


def _sasl_settings(listener: str, settings: Settings, catalog: Catalog, timers: Timers) -> SaslSettings:
    names = settings.listener_names(listener, "sasl.enabled.mechanisms")
    unserved = [name for name in names if name not in MECHANISMS]
    if unserved or not names:
        raise ConfigError(
            f"listener {listener}: sasl.enabled.mechanisms={','.join(names)} (Kafka's default is GSSAPI); "
            f"this broker has {', '.join(MECHANISMS)}"
        )
    return SaslSettings(
        mechanisms={name: _mechanism(name, listener, settings, catalog, timers) for name in names},
        max_reauth_ms={name: settings.listener_integer(listener, "connections.max.reauth.ms", name) for name in names},
        frame_bytes_max=settings.listener_integer(listener, "sasl.server.max.receive.size"),
        failure_delay_s=settings.integer("connection.failed.authentication.delay.ms") / 1000,
        wall_ms=timers.now_ms,
        monotonic_s=time.monotonic,
    )


def _mechanism(name: str, listener: str, settings: Settings, catalog: Catalog, timers: Timers) -> Mechanism:
    key = listener_key(listener, "sasl.jaas.config", name)
    value = settings.listener_value(listener, "sasl.jaas.config", name)
    options = {} if value is None else jaas_options(str(value), name, key)
    if name == PLAIN:
        if value is None:
            raise ConfigError(f"{key} is missing: PLAIN takes its users from it")
        return Plain(passwords=plain_users(options))
    if name == OAUTHBEARER:
        return OAuthBearer(validate=_token_validator(listener, settings, options, timers))
    return Scram(
        name=name,
        credential_of=lambda user: catalog.scram_users.get(user, {}).get(name),
        make_nonce=partial(secrets.token_urlsafe, NONCE_BYTES),
    )


def _token_validator(
    listener: str, settings: Settings, options: Mapping[str, str], timers: Timers
) -> Callable[[str], Token]:
    """What checks tokens: the claims of unsecured ones, or also their signature, by the configured class."""
    handler = settings.listener_text(listener, "sasl.server.callback.handler.class", OAUTHBEARER)
    if not handler:
        return UnsecuredValidator(options=options, now_ms=timers.now_ms).validate
    if handler != SIGNED_TOKENS:
        raise ConfigError(
            f"listener {listener}: sasl.server.callback.handler.class={handler} is not served; give {SIGNED_TOKENS}, "
            "or leave it out for tokens without a signature"
        )
    try:
        # Only a broker with signed tokens needs the library.
        from sharelens.broker.security.authentication.signed_tokens import JwksKeys, SignedValidator
    except ModuleNotFoundError as missing:
        raise ConfigError(f"signed tokens need {missing.name}: pip install 'sharelens[oauth]'") from missing

    def text(name: str) -> str:
        return settings.listener_text(listener, f"{OAUTH_PREFIX}{name}")

    def integer(name: str) -> int:
        return settings.listener_integer(listener, f"{OAUTH_PREFIX}{name}")

    url = text("jwks.endpoint.url")
    if not url:
        raise ConfigError(
            f"listener {listener}: {OAUTH_PREFIX}jwks.endpoint.url is missing: tokens are checked with it"
        )
    keys = JwksKeys(
        url,
        timers,
        refresh_ms=integer("jwks.endpoint.refresh.ms"),
        backoff_ms=integer("jwks.endpoint.retry.backoff.ms"),
        backoff_max_ms=integer("jwks.endpoint.retry.backoff.max.ms"),
    )
    return SignedValidator(
        key_of=keys.key,
        audiences=settings.listener_names(listener, f"{OAUTH_PREFIX}expected.audience"),
        issuer=text("expected.issuer"),
        skew_s=integer("clock.skew.seconds"),
        user_claim=text("sub.claim.name"),
    ).validate
