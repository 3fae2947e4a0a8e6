"""The options of the jobs."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from sharelens.configuration.limits import DEFAULT_LIMITS, Limits
from sharelens.kafka_log.dead_letter_records import DeadLetterTopics
from sharelens.measures.settings.observations import Observation

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import ExitStack

    import pyarrow as pa

    from sharelens.lake.lake import Lake
    from sharelens.measures.topics.kept_samples import KeptSamples

STAGES = ("ingest", "decode", "replay", "measure", "audit", "publish")
CHECKED_STAGES = ("ingest", "decode", "replay", "measure", "audit", "check", "publish")


Fetch: TypeAlias = "Callable[[RunOptions, ExitStack], RunOptions]"


class Observed(NamedTuple):
    """What a cluster says of the states of a run, and the bytes of user topics that were fetched for it."""

    observations: tuple[Observation, ...]
    fetched_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options of `run` and its stages.

    `until_ms`: only records whose log time lies below it; `rebuild`: "decode", "replay", "measure" or "audit", the
    stage that starts over; `topic_names`: names by topic id for topics that left no directory; `stages`: which
    to run, a subset of CHECKED_STAGES in order; `in_process_bytes`: how much a stage may read and still run in this
    process, without a JVM (0: always on Spark); `dead_letter_topics`: the topics to search for dead letters;
    `keep_dlq_values`: their keys and values are kept, too; `observations`: settings of groups from files, which the
    lake keeps; `skip_checks`: kinds of expectations that the stage check leaves out; `limits`: where its freshness and
    volume begin to count; `require_check`: only checked tables are published.
    `fetch`: called under the lake's lock, fetches what is new from a cluster, and returns the options with log
    directories, `fetched_bytes` and `observe`; what it opens is closed with the stack. `observe`: called with the
    states of the run, asks the cluster about them. `goes_on`: the process runs again; what the next `fetch` can use
    stays until `jobs.fetched.remove_behind_runs`.
    """

    lake: "Lake"
    log_dirs: tuple[str, ...] = ()
    until_ms: int | None = None
    cluster_id: str | None = None
    include_uncommitted: bool = False
    include_deleted: bool = False
    topic_names: dict[str, str] = field(default_factory=dict)
    rebuild: str | None = None
    lock_timeout_s: float = 60.0
    require_rows: bool = False
    stages: tuple[str, ...] = STAGES
    split_bytes: int = 32 << 20
    update_limit: int = 500
    in_process_bytes: int = 0
    dead_letter_topics: DeadLetterTopics = field(default_factory=DeadLetterTopics)
    keep_dlq_values: bool = False
    observations: tuple[Observation, ...] = ()
    skip_checks: tuple[str, ...] = ()
    limits: Limits = DEFAULT_LIMITS
    require_check: bool = False
    fetched_bytes: dict[str, int] | None = None
    fetch: "Fetch | None" = None
    goes_on: bool = False
    observe: "Callable[[pa.Table, KeptSamples], Observed] | None" = None
