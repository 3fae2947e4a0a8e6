"""Logs that real Apache Kafka brokers wrote, small enough to travel with the command `sharelens demo`.

Each scenario unpacks to a folder with `logs` (the broker's log directory), `checkpoints.jsonl` (what the broker's own
ReadShareGroupState answered; the last line is the end state) and `meta.json` (versions, configuration, topic ids).
"""

from pathlib import Path

from sharelens.demo_data.packed import SUFFIX, unpack

SCENARIOS = ("basic", "dlq")
"""basic: Kafka 4.3.1, accept, release, reject and lock time-outs. dlq: Kafka 4.4.0 with dead-letter topics."""


def unpack_scenario(name: str, into: Path) -> Path:
    """Unpack one of SCENARIOS below `into` and return its folder."""
    if name not in SCENARIOS:
        raise ValueError(f"no demo scenario {name!r}; there are {', '.join(SCENARIOS)}")
    unpack(Path(__file__).with_name(f"{name}{SUFFIX}"), into / name)
    return into / name
