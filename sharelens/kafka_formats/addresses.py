"""Addresses of brokers, as clients name them."""

import re

from state_model.errors import UsageError

HIGHEST_PORT = 65_535


def listeners(bootstrap_server: str) -> list[tuple[str, int]]:
    """Hosts and ports of the value of --bootstrap-server.

    Raises:
        UsageError: one is no HOST:PORT, or has the name of a listener before it, as `listeners` of a broker has.
    """
    places = []
    for address in bootstrap_server.split(","):
        name, has_name, without_name = address.strip().rpartition("://")
        if has_name:
            raise UsageError(
                f"--bootstrap-server {bootstrap_server}: the listener's name {name!r} is no part of an address; "
                f"give {without_name} (TLS and SASL: --command-config FILE with security.protocol)"
            )
        host, _, port = address.strip().rpartition(":")
        number = int(port) if re.fullmatch("[0-9]{1,5}", port) else 0
        if not host or not 0 < number <= HIGHEST_PORT:
            raise UsageError(
                f"--bootstrap-server {bootstrap_server}: {address!r} is no HOST:PORT; give the address of a listener, "
                "as localhost:9092"
            )
        places.append((host.strip("[]"), number))
    return places
