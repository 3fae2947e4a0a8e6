"""What the light broker costs, beside a real Kafka with the same client where one can be started."""

from collections.abc import Iterator
from pathlib import Path

from bench import brokers, heartbeats, rebalances
from state_model.errors import SharelensError

Line = tuple[str, str, str]
"""Name, value and note of a figure."""


def lines(folder: Path, records: int) -> Iterator[Line]:
    """The figures; `records`: to produce, acquire and accept in batches."""
    ours = brokers.measure(brokers.light_broker, folder / "broker-light", max(1, records))
    kafka: brokers.Speed | None = None
    try:
        kafka = brokers.measure(brokers.kafka_server, folder / "broker-kafka", max(1, records))
    except SharelensError as error:
        yield "Kafka", "skipped", str(error)
    yield from _speed("the light broker", ours, kafka)
    if kafka is not None:
        yield from _speed("Kafka", kafka, kafka)
    for name, rebalance_s in rebalances.REBALANCES.items():
        yield name, f"{1000 * rebalances.best_s(rebalance_s, folder):.0f} ms", ""
    with brokers.light_broker(folder / "broker-heartbeats", heartbeats.SETTINGS) as started:
        part = heartbeats.share_of_core(started)
    yield heartbeats.NAME, f"{100 * part:.1f} % of a core", ""


def _speed(name: str, speed: brokers.Speed, kafka: brokers.Speed | None) -> Iterator[Line]:
    for batch, rate in speed.records_per_s.items():
        share = "" if kafka is None else f"{100 * rate / kafka.records_per_s[batch]:.0f} % of Kafka's"
        yield f"{name}: end to end, batches of up to {batch:,}", f"{rate:,.0f} records/s", share
    yield f"{name}: start to first answer", f"{speed.start_s:.2f} s", ""
    yield f"{name}: memory at rest", f"{speed.idle_bytes / 2**20:.0f} MiB", ""
