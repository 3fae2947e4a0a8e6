"""How the C library keeps memory: few arenas for threads, and what large arrays gave back for the next ones.

Without glibc nothing changes. The functions are to be called before memory is allocated in threads (mallopt(3)).
"""

import ctypes

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8  # malloc.h of glibc
ARENAS = 2
LARGEST_ON_HEAP, MOST_KEPT = 32 << 20, 128 << 20
"""Bytes of the largest block on the heap, which is glibc's own limit, and of free memory at its end."""


def limit_arenas() -> None:
    """At most ARENAS arenas in this process, as `MALLOC_ARENA_MAX` would say: each one keeps what its threads freed."""
    _set({M_ARENA_MAX: ARENAS})


def keep_freed_memory() -> None:
    """Blocks up to LARGEST_ON_HEAP come from the heap, and MOST_KEPT of what was freed stays there.

    Else the kernel takes back what an array freed and clears pages for the next one of its size.
    """
    _set({M_MMAP_THRESHOLD: LARGEST_ON_HEAP, M_TRIM_THRESHOLD: MOST_KEPT})


def _set(values: dict[int, int]) -> None:
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for parameter, value in values.items():
            mallopt(parameter, value)
