"""Threads of a command share few arenas of the C library, and arrays use again what others freed."""

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import ctypes, sys, threading
from sharelens.cli.allocation import limit_arenas

if sys.argv[1] == "limited":
    limit_arenas()
library = ctypes.CDLL(None)
library.malloc.restype = library.fopen.restype = ctypes.c_void_p
together = threading.Barrier(12)

def allocate():
    together.wait()
    assert library.malloc(ctypes.c_size_t(1000))
    together.wait()

threads = [threading.Thread(target=allocate) for _ in range(12)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
file = ctypes.c_void_p(library.fopen(sys.argv[2].encode(), b"w"))
library.malloc_info(0, file)
library.fclose(file)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="arenas are those of glibc")
def test_threads_share_arenas(tmp_path: Path) -> None:
    arenas = {}
    for kind in ("limited", "usual"):
        subprocess.run([sys.executable, "-c", PROGRAM, kind, str(tmp_path / kind)], check=True)
        arenas[kind] = (tmp_path / kind).read_text(encoding="utf-8").count("<heap nr=")
    assert arenas["limited"] <= 2 < arenas["usual"]


ARRAYS = """
import resource, sys
import numpy as np
from sharelens.cli.allocation import keep_freed_memory

if sys.argv[1] == "kept":
    keep_freed_memory()
for _ in range(20):
    arrays = [np.ones(1 << 18) for _ in range(24)]
    del arrays
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="the heap is that of glibc")
def test_arrays_use_pages_again_that_others_freed() -> None:
    faults = {}
    for kind in ("kept", "usual"):
        done = subprocess.run([sys.executable, "-c", ARRAYS, kind], capture_output=True, text=True, check=True)
        faults[kind] = int(done.stdout)
    assert faults["kept"] * 3 < faults["usual"], faults
