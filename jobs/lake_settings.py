"""The settings of groups that a lake keeps: the observations of settings files that runs took."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from jobs import books
from jobs.ingest.names import commit_names
from sharelens.kafka_log.dead_letter_records import DeadLetterTopics
from sharelens.kafka_log.layout import LogDirectory
from sharelens.lake.lake import Lake, LakeReader
from sharelens.lake.parquet import write_rows
from sharelens.lake.settings_rows import COLUMNS, TABLE, observations_of, setting_rows
from sharelens.lake.tables import TABLES
from sharelens.measures.settings.checkpointed_ends import checkpointed_ends
from sharelens.measures.settings.observations import OF_NOW, Observation, Settings, news, settings_of

STAGE = "settings"


def stored(lake: LakeReader, cluster_id: str, up_to_run: int | None = None) -> Sequence[Observation]:
    """The observations of a cluster that runs up to `up_to_run` (None: all) stored."""
    condition = pc.field("cluster_id") == cluster_id
    if up_to_run is not None:
        condition &= pc.field("run_id") <= up_to_run
    return observations_of(lake.snapshot(TABLE).rows(COLUMNS, condition))


def stored_settings(lake: LakeReader, cluster_id: str, up_to_run: int | None = None) -> Settings:
    """The settings from those observations."""
    return settings_of(stored(lake, cluster_id, up_to_run))


def with_checkpointed_ends(
    observations: Sequence[Observation], directories: Sequence[LogDirectory]
) -> Sequence[Observation]:
    """What files of settings say, and what checkpoints of log directories do of other kinds."""
    kinds = {observation.kind for observation in observations}
    return (*observations, *(each for each in checkpointed_ends(directories) if each.kind not in kinds))


def unknown_settings(lake: Lake, cluster_id: str, observations: Iterable[Observation]) -> list[Observation]:
    """The observations that say something that the lake does not know."""
    return news(stored(lake, cluster_id), observations)


def kinds_and_times(lake: Lake, cluster_id: str, observations: Iterable[Observation]) -> list[dict[str, Any]]:
    """`kind` of new observations and `from_ms`, from when on they count; null: the first of a kind, for all time."""
    stored_kinds = {observation.kind for observation in stored(lake, cluster_id)}
    return [
        {"kind": observation.kind, "from_ms": observation.from_ms if observation.kind in stored_kinds else None}
        for observation in observations
    ]


def dead_letter_topics(
    lake: LakeReader, cluster_id: str, observations: Iterable[Observation], topics: DeadLetterTopics
) -> DeadLetterTopics:
    """`topics`, and those that stored and new observations name."""
    names = settings_of([*stored(lake, cluster_id), *observations]).dead_letter_topics
    return replace(topics, names=topics.names | names)


def store(lake: Lake, cluster_id: str, run: int, observations: Sequence[Observation], names: pa.Table) -> None:
    """Commits observations and names (NAME with cluster_id). Of OF_NOW those older than the measured ones go."""
    if names.num_rows:
        commit_names(lake, STAGE, run, names)
    measured = stored(lake, cluster_id, books.done(lake, "measure"))
    kept_files, removes = books.rewritten_without(lake, TABLE, (pc.field("cluster_id") == cluster_id) & _old(measured))
    rows = books.of_cluster(setting_rows(observations), cluster_id)
    files = write_rows(lake, TABLES[TABLE], rows, {"run_id": run})
    books.commit(lake, TABLE, STAGE, run, [*files, *kept_files], removes)


def _old(measured: Sequence[Observation]) -> pc.Expression:
    """The rows of observations of OF_NOW that are older than the measured ones."""
    old = pc.scalar(False)
    for kind in OF_NOW:
        newest_ms = max((observation.from_ms for observation in measured if observation.kind == kind), default=0)
        old |= (pc.field("kind") == kind) & (pc.field("valid_from_ms") < newest_ms)
    return old
