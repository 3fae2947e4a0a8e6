"""What the Airflow DAGs are told: the setting `dags`. Knows neither Airflow nor Spark: DAG files import it."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class DagSettings:
    """conf/base/dags.yaml says what each of these means. `start` has a zone; paths are absolute."""

    command: tuple[str, ...]
    lake: str
    log_dirs: tuple[str, ...]
    cluster_id: str | None
    schedule: str
    upkeep_schedule: str
    start: datetime
    catchup: bool
    retries: int
    retry_delay_s: float
    timeout_s: float
    metrics_file: str | None
    report_file: str | None
    cases_dir: str
    retain: str


def dag_settings(values: Mapping[str, object]) -> DagSettings:
    """The settings by name, checked.

    Raises:
        ValueError: one is missing, unknown or of the wrong kind; the message names it.
    """
    unknown = sorted(set(values) - set(_READERS))
    if unknown:
        raise ValueError(f"dags has no {unknown[0]!r}; there are {', '.join(_READERS)}")
    missing = [name for name in _READERS if name not in values]
    if missing:
        raise ValueError(f"dags.{missing[0]} is nowhere")
    read = {}
    for name, reader in _READERS.items():
        try:
            read[name] = reader(values[name])
        except (TypeError, ValueError) as error:
            raise ValueError(f"dags.{name}: {error}") from None
    return DagSettings(**read)  # type: ignore[arg-type]  # each reader returns the type of its field


def _words(value: object) -> tuple[str, ...]:
    """A list of texts, or one text of words as a shell splits them; at least one."""
    words = shlex.split(value) if isinstance(value, str) else value
    if not isinstance(words, list) or not words or not all(isinstance(word, str) and word for word in words):
        raise ValueError(f"{value!r} is not a list of texts")
    return tuple(words)


def _path(value: object) -> str:
    if not isinstance(value, str) or not PurePosixPath(value).is_absolute():
        raise ValueError(f"{value!r} is not an absolute path")
    return value


def _paths(value: object) -> tuple[str, ...]:
    return tuple(_source(word) for word in _words(value))


def _source(word: str) -> str:
    return word if "://" in word else _path(word)


def _or_none(reader: Callable[[object], str]) -> Callable[[object], str | None]:
    return lambda value: None if value is None or value == "" else reader(value)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{value!r} is not a text")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is neither true nor false")
    return value


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r} is not a number from 0 on")
    return value


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise ValueError(f"{value!r} is not a number of seconds above 0")
    return float(value)


def _moment(value: object) -> datetime:
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise ValueError(f"{value!r} is not a moment with a zone, such as 2026-01-01T00:00:00Z")
    return moment.astimezone(UTC)


_READERS: Final[dict[str, Callable[[object], object]]] = {
    "command": _words,
    "lake": _path,
    "log_dirs": _paths,
    "cluster_id": _or_none(_text),
    "schedule": _text,
    "upkeep_schedule": _text,
    "start": _moment,
    "catchup": _flag,
    "retries": _count,
    "retry_delay_s": _seconds,
    "timeout_s": _seconds,
    "metrics_file": _or_none(_path),
    "report_file": _or_none(_path),
    "cases_dir": _path,
    "retain": _text,
}
assert list(_READERS) == [field.name for field in fields(DagSettings)]
