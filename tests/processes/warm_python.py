"""A Python that has imported already what costs seconds: each script runs in a fork of it, a process of its own.

python tests/processes/warm_python.py SOCKET MODULE ...
    imports the modules, says `ready` and serves at the socket until it is ended
python -IS tests/processes/warm_python.py SOCKET + SCRIPT WORDS ...
    runs a script there, with the streams, folder and environment of this call, and ends as it ended, by a signal too

Both are one file; the second imports little.
"""

import json
import os
import socket
import sys

CALL = "+"
PIECE = 1 << 16


def serve(place: str, modules: list[str]) -> None:
    import gc
    import importlib

    for module in modules:
        importlib.import_module(module)
    gc.freeze()  # the collector of a fork leaves alone, and so shares, what was there before it
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(place)
        listening.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            caller, _ = listening.accept()
            with caller:
                request, streams, _, _ = socket.recv_fds(caller, PIECE, 2)
                while piece := caller.recv(PIECE):
                    request += piece
                child = os.fork()
                if child == 0:
                    os._exit(
                        become(streams, **json.loads(request))
                    )  # what was imported need not be taken down in order
                for stream in streams:
                    os.close(stream)
                _, status = os.waitpid(child, 0)
                caller.sendall(str(os.waitstatus_to_exitcode(status)).encode())


def become(streams: list[int], *, words: list[str], folder: str, environment: dict[str, str]) -> int:
    """Runs a script in this process, as Python's command line would; its exit code."""
    import runpy

    for stream, target in zip(streams, (1, 2), strict=True):
        os.dup2(stream, target)
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = words
    try:
        runpy.run_path(words[0], run_name="__main__")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def call(place: str, words: list[str]) -> int:
    request = {"words": words, "folder": os.getcwd(), "environment": dict(os.environ)}
    with socket.socket(socket.AF_UNIX) as served:
        served.connect(place)
        request_view = memoryview(json.dumps(request).encode())
        served.sendall(request_view[socket.send_fds(served, [request_view], [1, 2]) :])
        served.shutdown(socket.SHUT_WR)
        code = int(served.recv(16))
    if code < 0:
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    place, *rest = sys.argv[1:]
    if rest[:1] == [CALL]:
        raise SystemExit(call(place, rest[1:]))
    serve(place, rest)
