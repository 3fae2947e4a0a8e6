"""The option --listen: where an endpoint of metrics listens, and the line that says it is ready."""

import sys

from sharelens.output import tell
from state_model.errors import UsageError

PORT_MAX = 65_535


def listen_address(command: str, listen: str, *, allow_remote: bool) -> tuple[str, int]:
    """Host and port of HOST:PORT; addresses other than loopback need --allow-remote. Raises UsageError."""
    from sharelens.broker.config.listeners import is_loopback

    host, _, port = listen.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not bare or not port.isascii() or not port.isdecimal() or int(port) > PORT_MAX:
        raise UsageError(f"{command}: --listen: {listen!r} is not HOST:PORT; type 127.0.0.1:9309")
    if not allow_remote and not is_loopback(bare):
        raise UsageError(
            f"{command}: --listen: {listen} is reachable from other machines; add --allow-remote to allow it"
        )
    return bare, int(port)


def ensure_client(command: str) -> None:
    """prometheus_client is an extra. Raises UsageError without it."""
    try:
        import prometheus_client  # noqa: F401  # only whether it is there
    except ModuleNotFoundError as missing:
        raise UsageError(f"{command}: needs prometheus_client: pip install 'sharelens[metrics]'") from missing


def address_text(host: str, port: int) -> str:
    """The address of an endpoint, as a scraper has it."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/metrics"


def tell_ready(host: str, port: int) -> None:
    """Prints that an endpoint can be scraped."""
    tell(f"ready: {address_text(host, port)}")
    sys.stdout.flush()
