"""The addresses where the broker listens, and the addresses that it advertises to clients."""

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from broker.config.settings import Settings
from broker.errors import ConfigError, OptionError

LOOPBACK = "127.0.0.1"
PLAINTEXT = "PLAINTEXT"
_URL = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)://(?P<host>\[[0-9A-Fa-f:.]*\]|[^\[\]:/]*):(?P<port>\d{1,5})")
_BARE = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]*\]|[^\[\]:/]*):(?P<port>\d{1,5})")
PORT_MAX = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """An address to listen on (port 0: any) and the advertised address, null for the bound one."""

    name: str
    host: str
    port: int
    advertised: tuple[str, int] | None = None


ALL_ADDRESSES = ("0.0.0.0", "::")  # noqa: S104 - listening there is asked for by name and --allow-remote


def listeners(settings: Settings, *, listen: str | None, allow_remote: bool) -> list[Listener]:
    """The listeners of a configuration, or the one of `listen` (HOST:PORT) instead.

    With `listen` the advertised listeners count only where it names all addresses.

    Raises:
        ConfigError: a listener of another protocol than PLAINTEXT, an invalid address, or one that other machines
            can reach without `allow_remote`.
    """
    bound = [_bare(listen)] if listen is not None else _configured(settings)
    advertised = {name: (host, port) for name, host, port in map(_parse, settings.names("advertised.listeners"))}
    for listener in bound:
        if not allow_remote and not is_loopback(listener.host):
            raise ConfigError(
                f"listener {listener.name}://{listener.host}:{listener.port} can be reached by other machines; "
                "add --allow-remote to allow that"
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
        return Listener(name=listener.name, host=listener.host, port=listener.port, advertised=address)
    if listener.host in ALL_ADDRESSES:
        raise ConfigError(f"listener on {listener.host}: set advertised.listeners to what clients shall connect to")
    return listener


def _configured(settings: Settings) -> list[Listener]:
    protocols = _protocols(settings.names("listener.security.protocol.map"))
    for_controllers = set(settings.names("controller.listener.names"))
    configured = []
    for url in settings.names("listeners"):
        name, host, port = _parse(url)
        if name in for_controllers:
            continue
        protocol = protocols.get(name, name.upper())
        if protocol != PLAINTEXT:
            raise ConfigError(
                f"listener {url} asks for {protocol}; this broker serves PLAINTEXT only and won't downgrade"
            )
        configured.append(Listener(name=name, host=host, port=port))
    if not configured:
        raise ConfigError(f"listeners={','.join(settings.names('listeners'))}: none is left to serve")
    _check_distinct(configured)
    return configured


def _check_distinct(configured: Sequence[Listener]) -> None:
    ports = [listener.port for listener in configured if listener.port]
    names = [listener.name for listener in configured]
    if len(set(names)) < len(names) or len(set(ports)) < len(ports):
        raise ConfigError("listeners: each needs a name and a port of its own")


def _protocols(pairs: Iterable[str]) -> Mapping[str, str]:
    protocols = {}
    for pair in pairs:
        name, parted, protocol = pair.partition(":")
        if not parted:
            raise ConfigError(f"listener.security.protocol.map: {pair!r} is no NAME:PROTOCOL")
        protocols[name] = protocol.upper()
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
    return Listener(name=PLAINTEXT, host=host, port=port)


def _address(match: re.Match[str]) -> tuple[str, int]:
    port = int(match["port"])
    if port > PORT_MAX:
        raise OptionError(f"listener {match.string!r}: port {port} is above {PORT_MAX}")
    return match["host"].strip("[]") or LOOPBACK, port
