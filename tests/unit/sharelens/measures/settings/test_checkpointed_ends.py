"""Ends and log start offsets of user topics whose folders a copy lacks."""

from pathlib import Path

from sharelens.kafka_log.layout import LogDirectory, scan_log_directory
from sharelens.measures.settings.checkpointed_ends import checkpointed_ends
from sharelens.measures.settings.observations import Observation, Settings, settings_of


def directory(path: Path, ends: str, starts: str) -> LogDirectory:
    """A log directory with checkpoints, and a folder of orders-0 alone."""
    (path / "orders-0").mkdir(parents=True)
    (path / "orders-0" / "00000000000000000000.log").touch()
    for name, lines in (("replication-offset-checkpoint", ends), ("log-start-offset-checkpoint", starts)):
        text = f"0\n{len(lines.splitlines())}\n{lines}"
        (path / name).write_text(text, encoding="ascii")
    return scan_log_directory(str(path))


def observed(*directories: LogDirectory) -> tuple[tuple[Observation, ...], Settings]:
    found_observations = checkpointed_ends(directories)
    return found_observations, settings_of(found_observations)


def test_checkpoints_say_what_absent_folders_would(tmp_path: Path) -> None:
    first = directory(
        tmp_path / "a", "orders 0 9\norders 1 174\n__consumer_offsets 3 7\n", "orders 0 2\norders 1 150\n"
    )
    second = directory(tmp_path / "b", "orders 1 170\n", "orders 1 156\n")
    _, settings = observed(first, second)
    assert settings.end_offsets == {("orders", 1): 174}
    assert settings.log_starts == {("orders", 1): 156}


def test_checkpoints_of_partitions_that_are_there_say_nothing(tmp_path: Path) -> None:
    assert observed(directory(tmp_path / "a", "orders 0 9\n", "orders 0 2\n")) == ((), Settings())
