"""A step of building the wheel: takes compiled kernels along where `python -m tools.ship_kernels` has written them.

Such a wheel is one for this Python, machine and C library. Without them it is pure.
"""

import json
import platform
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KERNELS, INDEX = Path("state_model") / "compiled_kernels", "index.json"
"""Where the kernels lie below the root of the checkout, and the file that names them."""


class ShippedKernels(BuildHookInterface[Any]):
    """The hook of hatchling."""

    PLUGIN_NAME = "shipped-kernels"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the kernels and the tag to what is built."""
        folder = Path(self.root) / KERNELS
        if version == "editable" or not _has_kernels(folder):
            return
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        build_data["force_include"][str(folder)] = str(KERNELS)
        build_data["pure_python"] = False
        build_data["tag"] = f"{python}-{python}-{_platform()}"


def _has_kernels(folder: Path) -> bool:
    try:
        return bool(json.loads((folder / INDEX).read_text(encoding="utf-8")))
    except OSError:
        return False


def _platform() -> str:
    """The tag of this machine: where the C library is glibc, of its version, which the linker took symbols of."""
    library, version = platform.libc_ver()
    name = f"manylinux_{version.replace('.', '_')}" if library == "glibc" else "linux"
    return f"{name}_{platform.machine()}"
