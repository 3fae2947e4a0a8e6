"""The broker's process: start, signals and clean shutdown."""

import asyncio
import gc
import logging
import resource
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from sharelens.broker.config.settings import Settings

# kio imports hypothesis where it is installed, to register strategies for tests: a broker does not need it.
sys.modules.setdefault("hypothesis", None)  # type: ignore[arg-type]

import sharelens.broker.handlers.all  # noqa: E402, F401  (registers them)
from sharelens.broker.broker import Broker, Options  # noqa: E402
from sharelens.broker.metrics import IdleSelector  # noqa: E402
from sharelens.broker.timers import LoopTimers  # noqa: E402

Ready = Callable[[Broker, tuple[str, int] | None], None]
"""Called once when clients can connect, with the address of the metrics if they are served."""


def run(config: Settings, options: Options, ready: Ready, *, metrics_port: int | None = None) -> None:
    """Serve until SIGTERM or SIGINT.

    Args:
        metrics_port: where metrics are served on the loopback address, 0 for any port; None: nowhere.

    Raises:
        BrokerError: it can't start, or could not close its logs.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    _allow_many_files()
    idle = None if metrics_port is None else IdleSelector()
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(idle)) as runner:
        runner.run(_serve(config, options, ready, metrics_port, idle))


async def _serve(
    config: Settings, options: Options, ready: Ready, metrics_port: int | None, idle: IdleSelector | None
) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    served = Broker(config, LoopTimers(loop), options)
    await served.start()
    try:
        async with _metrics(served, metrics_port, idle) as metrics_address:
            # Objects of the load live until the end: the collector need not visit them.
            gc.collect()
            gc.freeze()
            ready(served, metrics_address)
            await stop.wait()
    finally:
        await served.stop()


@asynccontextmanager
async def _metrics(
    served: Broker, port: int | None, idle: IdleSelector | None
) -> AsyncIterator[tuple[str, int] | None]:
    """Serve the metrics of a broker while the block runs; their address, None without --metrics-port."""
    if port is None:
        yield None
        return
    # Only a broker with metrics loads prometheus_client.
    from sharelens.broker.metrics_endpoint import HOST, KafkaCollector, MetricsEndpoint

    collector = KafkaCollector(served.metrics, served.share_groups, served.epoch_groups, served.catalog, idle)
    endpoint = MetricsEndpoint(collector)
    bound = await endpoint.listen(port)
    try:
        yield HOST, bound
    finally:
        endpoint.close()


def _allow_many_files() -> None:
    """Raise the limit of open files to the system's: each connection and each open segment is a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
