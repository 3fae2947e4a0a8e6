"""Kernels that a checkout has compiled, for an environment with the same code: the compiler takes two minutes.

numba keeps them beside their modules, with a hash of the module.
"""

import shutil
from pathlib import Path

PACKAGES = ("state_model", "sharelens", "jobs", "pyspark_kafka_log")


def share_kernels(checkout: Path, packages: Path) -> int:
    """Copies kernels beside the modules of `packages` (a site-packages folder) that are those of a checkout.

    The number of files, of which a kernel has some. Modules that differ get none.
    """
    count = 0
    for package in PACKAGES:
        for compiled in sorted((checkout / package).rglob("*.nb[ic]")):  # replay.fold-12.py311.nbi is of replay.py
            source = compiled.parents[1] / f"{compiled.name.partition('.')[0]}.py"
            target = packages / source.relative_to(checkout)
            if source.is_file() and target.is_file() and source.read_bytes() == target.read_bytes():
                beside = target.parent / compiled.parent.name
                beside.mkdir(exist_ok=True)
                shutil.copyfile(compiled, beside / compiled.name)
                count += 1
    return count
