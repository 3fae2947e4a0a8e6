"""A step of building the wheel: takes compiled kernels along where `python -m tools.ship_kernels` has written them.

Such a wheel is one for this Python and machine, and needs the numba that compiled them. Without them it is pure.
"""

import platform
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KERNELS, NUMBA = Path("state_model") / "compiled_kernels", "NUMBA"
"""Where the kernels lie below the root of the checkout, and the file with the version of numba in it."""


class ShippedKernels(BuildHookInterface[Any]):
    """The hook of hatchling."""

    PLUGIN_NAME = "shipped-kernels"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the kernels, the tag and the pinned numba to what is built."""
        folder = Path(self.root) / KERNELS
        if version == "editable" or not (folder / NUMBA).is_file():
            return
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        build_data["force_include"][str(folder)] = str(KERNELS)
        build_data["pure_python"] = False
        build_data["tag"] = f"{python}-{python}-manylinux_2_17_{platform.machine()}"
        build_data["dependencies"].append(f"numba=={(folder / NUMBA).read_text(encoding='ascii').strip()}")
