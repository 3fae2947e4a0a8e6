"""Running the Go toolchain for tests."""

import os


def go_environment() -> dict[str, str]:
    """Nothing but modules is fetched, and no file of the checkout changes."""
    return os.environ | {"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly", "CGO_ENABLED": "0"}
