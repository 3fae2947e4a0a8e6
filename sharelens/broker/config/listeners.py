"""The addresses where the broker listens, and the addresses that it advertises to clients."""

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from sharelens.broker.config.settings import Settings
from sharelens.broker.errors import ConfigError, OptionError

LOOPBACK = "127.0.0.1"
_URL = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)://(?P<host>\[[0-9A-Fa-f:.]*\]|[^\[\]:/]*):(?P<port>\d{1,5})")
_BARE = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]*\]|[^\[\]:/]*):(?P<port>\d{1,5})")
PORT_MAX = 65_535


class SecurityProtocol(StrEnum):
    """What protects a listener (Kafka's SecurityProtocol)."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def has_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def has_sasl(self) -> bool:
        """Whether clients authenticate with SASL."""
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """An address to listen on (port 0: any) and the advertised address, null for the bound one."""

    name: str
    host: str
    port: int
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    advertised: tuple[str, int] | None = None


ALL_ADDRESSES = ("0.0.0.0", "::")  # noqa: S104 - listening there is asked for by name and --allow-remote


def listeners(settings: Settings, *, listen: str | None, allow_remote: bool) -> list[Listener]:
    """The listeners of a configuration, or the one of `listen` (HOST:PORT) instead.

    With `listen` the advertised listeners count only where it names all addresses.

    Raises:
        ConfigError: a listener without a security protocol, an invalid address, or a listener that other machines
            can reach, without authentication and without `allow_remote`.
    """
    bound = [_bare(listen)] if listen is not None else _configured(settings)
    advertised = {name: (host, port) for name, host, port in map(_parse, settings.names("advertised.listeners"))}
    for listener in bound:
        if not allow_remote and not is_loopback(listener.host) and not _authenticates(settings, listener):
            raise ConfigError(
                f"listener {listener.name}://{listener.host}:{listener.port} can be reached by other machines and "
                "has no authentication; give it SASL or ssl.client.auth=required, or add --allow-remote"
            )
    return [
        _advertise(listener, advertised.get(listener.name))
        if listen is None or listener.host in ALL_ADDRESSES
        else _advertise(listener, None)
        for listener in bound
    ]


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def controller_listeners(settings: Settings) -> list[str]:
    """The listeners of the configuration that are for controllers, and so are not served."""
    names = set(settings.names("controller.listener.names"))
    return [url for url in settings.names("listeners") if url.partition("://")[0] in names]


def _advertise(listener: Listener, address: tuple[str, int] | None) -> Listener:
    """The listener with its advertised address; a loopback listener never advertises another host."""
    if address is not None and (is_loopback(address[0]) or not is_loopback(listener.host)):
        return replace(listener, advertised=address)
    if listener.host in ALL_ADDRESSES:
        raise ConfigError(f"listener on {listener.host}: set advertised.listeners to what clients shall connect to")
    return listener


def _authenticates(settings: Settings, listener: Listener) -> bool:
    """Whether every client of the listener has to say who it is, and to prove it."""
    if listener.protocol.has_sasl:
        return True
    return listener.protocol.has_tls and settings.listener_text(listener.name, "ssl.client.auth") == "required"


def _configured(settings: Settings) -> list[Listener]:
    protocols = _protocols(settings.names("listener.security.protocol.map"))
    for_controllers = set(settings.names("controller.listener.names"))
    configured = []
    for url in settings.names("listeners"):
        name, host, port = _parse(url)
        if name in for_controllers:
            continue
        protocol = protocols.get(name)
        if protocol is None:
            raise ConfigError(f"listener {url} has no protocol: add {name}:PROTOCOL to listener.security.protocol.map")
        configured.append(Listener(name=name, host=host, port=port, protocol=protocol))
    if not configured:
        raise ConfigError(f"listeners={','.join(settings.names('listeners'))}: none is left to serve")
    _check_distinct(configured)
    return configured


def _check_distinct(configured: Sequence[Listener]) -> None:
    ports = [listener.port for listener in configured if listener.port]
    names = [listener.name for listener in configured]
    if len(set(names)) < len(names) or len(set(ports)) < len(ports):
        raise ConfigError("listeners: each needs a name and a port of its own")


def _protocols(pairs: Sequence[str]) -> Mapping[str, SecurityProtocol]:
    """The protocols by listener name; without pairs the protocols' own names are the listeners'."""
    if not pairs:
        return {protocol.value: protocol for protocol in SecurityProtocol}
    protocols = {}
    for pair in pairs:
        name, parted, protocol = pair.partition(":")
        if not parted:
            raise ConfigError(f"listener.security.protocol.map: {pair!r} is no NAME:PROTOCOL")
        try:
            protocols[name] = SecurityProtocol(protocol.upper())
        except ValueError:
            raise ConfigError(
                f"listener.security.protocol.map: {pair!r} names no protocol of {', '.join(SecurityProtocol)}"
            ) from None
    return protocols


def _parse(url: str) -> tuple[str, str, int]:
    match = _URL.fullmatch(url)
    if match is None:
        raise ConfigError(f"listener {url!r} is no NAME://HOST:PORT")
    return match["name"], *_address(match)


def _bare(text: str) -> Listener:
    match = _BARE.fullmatch(text)
    if match is None:
        raise OptionError(f"--listen {text!r} is no HOST:PORT")
    host, port = _address(match)
    return Listener(name=SecurityProtocol.PLAINTEXT.value, host=host, port=port)


def _address(match: re.Match[str]) -> tuple[str, int]:
    port = int(match["port"])
    if port > PORT_MAX:
        raise OptionError(f"listener {match.string!r}: port {port} is above {PORT_MAX}")
    return match["host"].strip("[]") or LOOPBACK, port
