"""How the C library keeps memory for threads: few arenas, because each one keeps what its threads gave back."""

import ctypes

M_ARENA_MAX = -8  # malloc.h of glibc
ARENAS = 2


def limit_arenas() -> None:
    """At most ARENAS arenas in this process, as `MALLOC_ARENA_MAX` would say; without glibc nothing changes.

    To be called before threads allocate memory (mallopt(3)).
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_ARENA_MAX, ARENAS)
