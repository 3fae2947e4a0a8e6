"""The setting `dags`, for the Airflow DAGs. Imports neither Airflow nor Spark, because DAG files import it."""

import shlex
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeInt,
    Strict,
    StrictBool,
)


def _absolute(path: str) -> str:
    if not PurePosixPath(path).is_absolute():
        raise ValueError("should be an absolute path")
    return path


def _absolute_or_uri(place: str) -> str:
    return place if "://" in place else _absolute(place)


def _split_words(value: object) -> object:
    """One text is split into words as a shell does."""
    return shlex.split(value) if isinstance(value, str) else value


def _empty_to_none(value: object) -> object:
    return None if value == "" else value


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)


Text = Annotated[str, Field(min_length=1)]
OptionalText = Annotated[Text | None, BeforeValidator(_empty_to_none)]
AbsolutePath = Annotated[str, AfterValidator(_absolute)]
OptionalPath = Annotated[AbsolutePath | None, BeforeValidator(_empty_to_none)]
Words = Annotated[tuple[Text, ...], BeforeValidator(_split_words), Field(min_length=1)]
Sources = Annotated[
    tuple[Annotated[str, AfterValidator(_absolute_or_uri)], ...], BeforeValidator(_split_words), Field(min_length=1)
]
Seconds = Annotated[float, Strict(), Field(gt=0, allow_inf_nan=False)]


class DagSettings(BaseModel):
    """conf/base/dags.yaml describes each setting. `start` is in UTC; paths are absolute."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: Words
    lake: AbsolutePath
    log_dirs: Sources
    cluster_connection: OptionalText = None
    user_topics: Literal["none", "samples", "all"] = "samples"
    cluster_id: OptionalText
    settings: OptionalPath = None
    audit_blocks: Literal["error", "warning", "none"] | None = None
    schedule: Text
    upkeep_schedule: Text
    start: Annotated[AwareDatetime, AfterValidator(_utc)]
    catchup: StrictBool
    retries: Annotated[NonNegativeInt, Strict()]
    retry_delay_s: Seconds
    timeout_s: Seconds
    metrics_file: OptionalPath = None
    report_file: OptionalPath = None
    cases_dir: AbsolutePath
    retain: Text
