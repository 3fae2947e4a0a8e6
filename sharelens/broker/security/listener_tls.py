"""TLS of a listener: its context, the principal of a client's certificate, and the change of its own certificate."""

from collections.abc import Callable

from sharelens.broker.config.listeners import Listener
from sharelens.broker.config.settings import Settings
from sharelens.broker.protocol.registry import ANONYMOUS
from sharelens.broker.protocol.tls import TlsChannel, TlsError
from sharelens.broker.security.authentication.distinguished_name import distinguished_name, mapped_name, parse_rules
from sharelens.broker.security.authentication.sasl import USER_TYPE
from sharelens.broker.security.certificates import check_replacement, read_stores, server_context


class ListenerTls:
    """Creates the channels of new connections. Raises ConfigError when the stores can't be used."""

    def __init__(self, listener: Listener, settings: Settings) -> None:
        self._name = listener.name
        self._settings = settings
        self._has_principals = not listener.protocol.has_sasl
        self._rules = parse_rules(settings.listener_text(listener.name, "ssl.principal.mapping.rules"))
        self._stores = read_stores(settings, listener.name)
        self._context = server_context(settings, listener.name, self._stores)

    def channel(self) -> TlsChannel:
        """The TLS of a new connection."""
        return TlsChannel(self._context, self._principal_of)

    def prepare_reload(self) -> Callable[[], None]:
        """Read the stores again; the returned function puts them to use for new connections.

        Raises:
            ConfigError: the stores can't be used, or the certificate may not replace the old one.
        """
        stores = read_stores(self._settings, self._name)
        context = server_context(self._settings, self._name, stores)
        check_replacement(self._settings, self._name, self._stores, stores)

        def use() -> None:
            self._stores, self._context = stores, context

        return use

    def _principal_of(self, certificate: bytes | None) -> str:
        """The principal of a client by its certificate. Raises TlsError."""
        if certificate is None or not self._has_principals:
            return ANONYMOUS
        try:
            name = distinguished_name(certificate)
        except ValueError as error:
            raise TlsError(f"a client's certificate can't be read: {error}") from error
        mapped = mapped_name(self._rules, name)
        if mapped is None:
            raise TlsError(f"no rule of ssl.principal.mapping.rules matches {name}")
        return f"{USER_TYPE}{mapped}"
