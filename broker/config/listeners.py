"""Where the broker listens, and what address it tells its clients."""

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
    """An address to listen on (port 0: any) and the one that clients are told, null for the bound one."""

    name: str
    host: str
    port: int
    advertised: tuple[str, int] | None = None


ALL_ADDRESSES = ("0.0.0.0", "::")  # noqa: S104 - listening there is asked for by name and --allow-remote


def listeners(settings: Settings, *, listen: str | None, allow_remote: bool) -> list[Listener]:
    """The listeners of a configuration, or the one of `listen` (HOST:PORT) instead.

    With `listen` the advertised listeners count only where it names no address that clients could be told.

    Raises:
        ConfigError: a listener of another protocol than PLAINTEXT, an address that is none, or one that other machines
            can reach without `allow_remote`.
    """
    found = [_bare(listen)] if listen is not None else _configured(settings)
    told = {name: (host, port) for name, host, port in map(_parse, settings.names("advertised.listeners"))}
    for listener in found:
        if not allow_remote and not is_loopback(listener.host):
            raise ConfigError(
                f"listener {listener.name}://{listener.host}:{listener.port} can be reached by other machines; "
                "add --allow-remote if that is meant"
            )
    return [
        _advertise(listener, told.get(listener.name) if listen is None or listener.host in ALL_ADDRESSES else None)
        for listener in found
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


def _advertise(listener: Listener, told: tuple[str, int] | None) -> Listener:
    """Clients of a loopback listener are told the loopback address, whatever the file of another machine says."""
    if told is not None and (is_loopback(told[0]) or not is_loopback(listener.host)):
        return Listener(name=listener.name, host=listener.host, port=listener.port, advertised=told)
    if listener.host in ALL_ADDRESSES:
        raise ConfigError(f"listener on {listener.host}: set advertised.listeners to what clients shall connect to")
    return listener


def _configured(settings: Settings) -> list[Listener]:
    protocols = _protocols(settings.names("listener.security.protocol.map"))
    for_controllers = set(settings.names("controller.listener.names"))
    found = []
    for url in settings.names("listeners"):
        name, host, port = _parse(url)
        if name in for_controllers:
            continue
        protocol = protocols.get(name, name.upper())
        if protocol != PLAINTEXT:
            raise ConfigError(
                f"listener {url} asks for {protocol}; this broker serves PLAINTEXT only and won't downgrade"
            )
        found.append(Listener(name=name, host=host, port=port))
    if not found:
        raise ConfigError(f"listeners={','.join(settings.names('listeners'))}: none is left to serve")
    _check_distinct(found)
    return found


def _check_distinct(found: Sequence[Listener]) -> None:
    ports = [listener.port for listener in found if listener.port]
    names = [listener.name for listener in found]
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
    found = _URL.fullmatch(url)
    if found is None:
        raise ConfigError(f"listener {url!r} is no NAME://HOST:PORT")
    return found["name"], *_address(found)


def _bare(text: str) -> Listener:
    found = _BARE.fullmatch(text)
    if found is None:
        raise OptionError(f"--listen {text!r} is no HOST:PORT")
    host, port = _address(found)
    return Listener(name=PLAINTEXT, host=host, port=port)


def _address(found: re.Match[str]) -> tuple[str, int]:
    port = int(found["port"])
    if port > PORT_MAX:
        raise OptionError(f"listener {found.string!r}: port {port} is above {PORT_MAX}")
    return found["host"].strip("[]") or LOOPBACK, port
