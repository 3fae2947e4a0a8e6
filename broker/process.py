"""The broker as a process of its own: from options to a clean end."""

import asyncio
import gc
import logging
import resource
import signal
import sys
from collections.abc import Callable

from broker.config.settings import Settings

# kio imports hypothesis where it is installed, to register strategies for tests: a broker has no use for it.
sys.modules.setdefault("hypothesis", None)  # type: ignore[arg-type]

import broker.handlers.all  # noqa: E402, F401  (registers them)
from broker.broker import Broker, Options  # noqa: E402
from broker.timers import LoopTimers  # noqa: E402


def run(config: Settings, options: Options, ready: Callable[[Broker], None]) -> None:
    """Serve until SIGTERM or SIGINT; `ready` is called once when clients can connect.

    Raises:
        BrokerError: it can't start, or could not close its logs.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    _allow_many_files()
    asyncio.run(_serve(config, options, ready))


async def _serve(config: Settings, options: Options, ready: Callable[[Broker], None]) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    served = Broker(config, LoopTimers(loop), options)
    await served.start()
    # What was loaded so far stays: no need to look at it again and again.
    gc.collect()
    gc.freeze()
    ready(served)
    await stop.wait()
    await served.stop()


def _allow_many_files() -> None:
    """Each connection and each open segment is a file: take as many as the system gives."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
