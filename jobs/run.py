"""The pipeline: metadata, ingest, decode, replay, topics, settings, measure, audit [, check], publish.

    plan | bronze, extents | silver | gold | user topics' headers | publication
         ^ a killed run resumes here: its plan and its commits are in the tables

A run that finds no new records starts no JVM: the session starts, and stages are imported, when there is work.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from jobs import books, lake_settings, publish
from jobs.decode.topic_starts import lowest_offsets
from jobs.errors import ClusterMismatchError, JobError
from jobs.fetched import remove_fetched
from jobs.freshness import freshness
from jobs.ingest import plan
from jobs.ingest import stage as ingest
from jobs.ingest.copies import divergence
from jobs.ingest.dead_letter_topics import without_letters
from jobs.ingest.names import commit_names, unknown_names
from jobs.ingest.plan import Extent
from jobs.ingest.sources import Sources
from jobs.ingest.streams_topics import topics_of_streams_groups
from jobs.ingest.undecoded import undecoded_lowest
from jobs.options import RunOptions
from jobs.progress import Progress
from jobs.refusals import check_lake, check_sources
from jobs.spark import executors
from jobs.summary import Summary
from jobs.writing import Writer, is_written, writing
from sharelens.lake import gates
from sharelens.lake.commit import create_tables
from sharelens.lake.parquet import write_rows
from sharelens.lake.tables import TABLES
from sharelens.measures.settings.observations import Observation
from state_model.topics import METADATA_TOPIC, RECORD_TOPICS, UNKNOWN_CLUSTER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


class Pipeline:
    """One run over one lake, under its lock. `session` starts Spark on first use."""

    def __init__(
        self, options: RunOptions, session: Callable[[], "SparkSession"], progress: Progress, writer: Writer
    ) -> None:
        self._options = options
        self._lake = options.lake
        self._session = session
        self._engine = executors.Engine(self._start_session, options.in_process_bytes)
        self._progress = progress
        self._lock = writer.lock
        self._metadata_run: int | None = None
        self.summary = Summary(set_aside=list(writer.set_aside))

    def _start_session(self) -> "SparkSession":
        with self._timed("session"), self._progress.waiting("starting Spark"):
            spark = self._session()
            jvm = executors.jvm_pid(spark)
            if jvm is not None:
                self._lock.note_jvm(jvm)
            executors.warm_up(spark)
        return spark

    def go(self) -> Summary:
        """Runs the stages that the options name."""
        sources = Sources(plan.scan_directories(self._options.log_dirs, include_deleted=self._options.include_deleted))
        self.summary.skipped = [line for directory in sources.directories for line in directory.skipped]
        create_tables(self._lake)
        stages = self._options.stages
        if "ingest" in stages:
            self._resume("ingest")
            self._read_metadata(sources)
            self._plan_records(sources)
        if "decode" in stages and books.done(self._lake, "decode") < books.done(self._lake, "ingest"):
            self._decode()
        if "replay" in stages and books.done(self._lake, "replay") < books.done(self._lake, "decode"):
            self._replay()
        if "ingest" in stages:
            self._resume("topics")
            self._plan_topics(sources)
        observations = lake_settings.with_checkpointed_ends(self._options.observations, sources.directories)
        if observations or self._options.topic_names:
            self._store_settings(sources, observations)
        if "measure" in stages:
            self._measure()
        if "audit" in stages:
            self._audit()
        if "check" in stages:
            self._check()
        if "publish" in stages:
            self._publish()
        return self.summary

    def fetch(self, opened: ExitStack) -> None:
        """Fetches what is new from the cluster that the options name, into log directories."""
        if self._options.fetch is not None:
            with self._timed("fetch"), self._progress.waiting("fetching from the cluster"):
                self._options = self._options.fetch(self._options, opened)
            self.summary.fetched_bytes = self._options.fetched_bytes

    def _resume(self, stage: str) -> None:
        """Finishes a stage that was killed after its plan."""
        run = books.done(self._lake, f"{stage}-plan")
        if run <= books.done(self._lake, stage):
            return
        rows = books.extents(self._lake, (pc.field("run_id") == run) & (pc.field("status") == "planned"))
        ingested = self._ingested()
        extents = plan.resumed([row for row in rows if not ingest.is_rebuild(row)], ingested)
        self._read(stage, run, rows, extents)

    def _ingested(self) -> list[dict[str, Any]]:
        return books.extents(self._lake, pc.field("status") == "taken")

    def _next_run(self, stage: str) -> int:
        """The number of the run that plans `stage` next: the newest run, unless it has planned that stage already."""
        newest = max(books.done(self._lake, name) for name in books.MARKER)
        if stage == "ingest":
            return newest if newest == self._metadata_run else newest + 1
        begun = stage if stage == lake_settings.STAGE else f"{stage}-plan"
        return max(newest, *(books.done(self._lake, name) + 1 for name in (begun, "measure", "audit")))

    def _read_metadata(self, sources: Sources) -> None:
        """Reads the new records of the metadata log, if there is one."""
        if METADATA_TOPIC in {partition.topic for partition in sources.partitions}:
            from jobs.metadata import stage as metadata

            cluster_id = self._cluster(sources, ingested := self._ingested())
            with self._timed("metadata"):
                outcome = metadata.run_metadata(self._lake, sources.directories, cluster_id, ingested)
            self._metadata_run = self.summary.add_metadata(cluster_id, outcome)

    def _plan_records(self, sources: Sources) -> None:
        """Plans, commits and reads the new records of the internal topics, or plans a rebuild."""
        if not sources.directories:
            self._plan_rebuild()
            return
        ingested = self._ingested()
        cluster_id = self._cluster(sources, ingested)
        options = self._options
        earlier_extents = [
            row for row in ingested if row["cluster_id"] == cluster_id and row["content"] == "log_record"
        ]
        before = {row["topic"] for row in earlier_extents}
        observations, topics = options.observations, options.dead_letter_topics
        letters = lake_settings.dead_letter_topics(self._lake, cluster_id, observations, topics)
        selected = [
            p for p in sources.partitions if p.topic in RECORD_TOPICS or p.topic in before or letters.takes(p.topic)
        ]
        selected.sort(key=lambda p: p.topic not in RECORD_TOPICS)  # share state before the letters about it
        extents = plan.plan(
            selected,
            earlier_extents,
            content="log_record",
            include_uncommitted=options.include_uncommitted,
            until_ms=options.until_ms,
            compare=lambda partition, copy, overlaps: divergence(self._lake, cluster_id, partition, copy, overlaps),
        )
        run = self._next_run("ingest")
        rows = sources.extent_rows(extents, cluster_id, run, self._options.until_ms)
        if options.rebuild is not None:
            rows += plan.rebuild_rows(earlier_extents, options.rebuild, run=run, until_ms=options.until_ms)
        self.summary.cluster_id = cluster_id
        if not options.include_uncommitted and options.until_ms is None:
            self.summary.held_back = plan.held_back(selected, earlier_extents, extents)
        if rows:
            self._begin("ingest", rows, extents)

    def _plan_rebuild(self) -> None:
        """Plans the rebuild of one cluster, or of all."""
        options, ingested = self._options, self._ingested()
        clusters = self._clusters(ingested)
        self.summary.cluster_id = options.cluster_id or (clusters[0] if len(clusters) == 1 else None)
        earlier_extents = [
            r for r in ingested if r["content"] == "log_record" and options.cluster_id in (None, r["cluster_id"])
        ]
        if options.rebuild is not None and earlier_extents:
            run = self._next_run("ingest")
            rows = plan.rebuild_rows(earlier_extents, options.rebuild, run=run, until_ms=options.until_ms)
            self._begin("ingest", rows, [])

    def _plan_topics(self, sources: Sources) -> None:
        """Plans, commits and reads new batch headers of user topics with share state and of those of streams groups."""
        if not sources.directories:
            return
        ingested = self._ingested()
        cluster_id = self._cluster(sources, ingested)
        lowest = lowest_offsets(self._lake, cluster_id)
        for place, start in undecoded_lowest(self._engine, self._lake, cluster_id, self._progress).items():
            lowest[place] = min(start, lowest.get(place, start))
        of_streams = topics_of_streams_groups(self._lake, cluster_id)
        lowest |= {(part.topic_id, part.partition): 0 for part in sources.partitions if part.topic in of_streams}
        extents = plan.plan(
            [p for p in sources.partitions if p.topic not in RECORD_TOPICS and (p.topic_id, p.partition) in lowest],
            [row for row in ingested if row["cluster_id"] == cluster_id and row["content"] == "topic_batch"],
            content="topic_batch",
            include_uncommitted=self._options.include_uncommitted,
            lowest=lowest,
        )
        rows = sources.extent_rows(extents, cluster_id, self._next_run("topics"), self._options.until_ms)
        names = unknown_names(self._lake, cluster_id, sources.partitions, self._options.topic_names)
        if rows or names.num_rows:
            self._begin("topics", rows, extents)
            commit_names(self._lake, "topics", books.done(self._lake, "topics"), names)

    def _store_settings(self, sources: Sources, observed: Sequence[Observation]) -> None:
        """Commits what files of settings or a cluster say and the lake does not know; measures take it up."""
        cluster_id = self._cluster_of_settings(sources)
        observations = lake_settings.unknown_settings(self._lake, cluster_id, observed)
        if self._options.observe is not None and (observations or self.summary.run_id is not None):
            with self._timed("observe"):
                from jobs import observing

                of_cluster = observing.observed(self._lake, cluster_id, self._options.observe)
            observations += lake_settings.unknown_settings(self._lake, cluster_id, of_cluster.observations)
            self.summary.add_fetched(of_cluster.fetched_bytes)
        names = unknown_names(self._lake, cluster_id, (), self._options.topic_names)
        if observations or names.num_rows:
            run = self._next_run(lake_settings.STAGE)
            self.summary.settings = lake_settings.kinds_and_times(self._lake, cluster_id, observations)
            lake_settings.store(self._lake, cluster_id, run, observations, names)
            self.summary.run_id = run

    def _cluster_of_settings(self, sources: Sources) -> str:
        """The cluster of the directories, or --cluster-id, or the only one of the lake."""
        ingested = self._ingested()
        if sources.directories:
            return self._cluster(sources, ingested)
        clusters = self._clusters(ingested)
        if self._options.cluster_id is None and len(clusters) != 1:
            there = f"clusters {', '.join(clusters)}; say --cluster-id" if clusters else "no records; run it first"
            raise ClusterMismatchError(f"--settings: {self._lake} holds {there}")
        return self._options.cluster_id or clusters[0]

    def _clusters(self, ingested: Sequence[dict[str, Any]]) -> list[str]:
        """The clusters of the lake; --cluster-id names one of them.

        Raises:
            ClusterMismatchError: it names another one.
        """
        clusters, named = sorted({row["cluster_id"] for row in ingested}), self._options.cluster_id
        if named is not None and named not in clusters:
            there = ", ".join(clusters) or "none"
            raise ClusterMismatchError(f"no cluster {named} in {self._lake}; clusters there: {there}")
        return clusters

    def _cluster(self, sources: Sources, ingested: Sequence[dict[str, Any]]) -> str:
        return plan.cluster_of(sources.directories, self._options.cluster_id, {row["cluster_id"] for row in ingested})

    def _begin(self, stage: str, rows: list[dict[str, Any]], extents: Sequence[Extent]) -> None:
        """Commits the plan, then executes it."""
        run = rows[0]["run_id"] if rows else self._next_run(stage)
        table = TABLES[books.EXTENT]
        files = write_rows(self._lake, table, books.rows_table(books.EXTENT, rows), {})
        books.commit(self._lake, books.EXTENT, f"{stage}-plan", run, files)
        self._read(stage, run, rows, extents)

    def _read(self, stage: str, run: int, rows: Sequence[dict[str, Any]], extents: Sequence[Extent]) -> None:
        """Reads the extents of a planned stage and commits their rows."""
        with self._timed(stage):
            outcomes = ingest.read_extents(
                self._engine,
                self._lake,
                extents,
                table=ingest.TABLE_OF[stage],
                cluster_id=rows[0]["cluster_id"] if rows else "",
                run=run,
                include_uncommitted=self._options.include_uncommitted,
                keep_dlq_values=self._options.keep_dlq_values,
                split_bytes=self._options.split_bytes,
                progress=self._progress,
            )
            ingested = ingest.taken_rows(rows, extents, outcomes)
            ingest.commit_taken(self._lake, stage, run, outcomes, extents, ingested)
        self.summary.add_read(run, ingest.TABLE_OF[stage], outcomes, ingested)
        if stage == "ingest":
            self.summary.skipped += without_letters(ingested)

    def _decode(self) -> None:
        with self._timed("decode"):
            from jobs.decode.stage import run_decode

            run = books.done(self._lake, "ingest")
            counts = run_decode(self._engine, self._lake, run, self._progress)
        self.summary.run_id = run
        self.summary.quarantined += counts.pop("problems", 0)
        self.summary.counts |= counts

    def _replay(self) -> None:
        with self._timed("replay"):
            from jobs.replay.stage import run_replay

            run, limit = books.done(self._lake, "decode"), self._options.update_limit
            counts = run_replay(self._engine, self._lake, run, self._progress, update_limit=limit)
        self.summary.run_id = run
        self.summary.counts |= counts

    def _measure(self) -> None:
        if books.done(self._lake, "groups") < books.done(self._lake, "decode"):
            from jobs.measure.group_histories import run_group_histories

            self.summary.counts |= run_group_histories(self._lake)
        run = books.newest_to_measure(self._lake)
        if is_written(self._lake, "measure", run):
            return
        with self._timed("measure"):
            from jobs.measure.reconcile import run_reconcile
            from jobs.measure.stage import run_measure

            counts = run_measure(self._engine, self._lake, run, self._progress)
            counts |= run_reconcile(self._engine, self._lake, run, self._progress)
        self.summary.run_id = run
        self.summary.counts |= counts

    def _audit(self) -> None:
        run = books.newest_to_audit(self._lake)
        if books.done(self._lake, "audit") >= run:
            return
        with self._timed("audit"):
            from jobs.audit.stage import run_audit

            counts = run_audit(self._engine, self._lake, run, self._progress)
        self.summary.run_id = run
        self.summary.counts |= counts

    def _check(self) -> None:
        """Checks the tables, unless the lake is published and checked as it is."""
        if publish.is_current(self._lake) and not publish.unchecked(self._lake):
            return
        with self._timed("check"):
            from jobs.quality.check import CheckOptions, check_held

            check_options = CheckOptions(lake=self._lake, skip=self._options.skip_checks, limits=self._options.limits)
            check_held(check_options, self._progress)

    def _publish(self) -> None:
        self.summary.gates = gates.closed(self._lake)
        if publish.is_current(self._lake):
            return
        if self.summary.gates:
            self.summary.withheld = True
            return
        if self._options.require_check:
            publish.ensure_checked(self._lake)
        with self._timed("publish"):
            run = max(publish.next_run(self._lake), 1)
            cluster_id = self.summary.cluster_id or UNKNOWN_CLUSTER
            before = publish.published_run(self._lake)
            publish.publish(self._lake, run, cluster_id, books.software_version())
            self.summary.freshness = freshness(self._lake, before, books.now_ms())

    @contextmanager
    def _timed(self, name: str) -> "Iterator[None]":
        """Adds the block's time to a stage, and notes its engine; the start of the session is a stage of its own."""
        seconds = self.summary.seconds
        begun, session_before = time.monotonic(), seconds.get("session", 0.0)
        self._engine.forget()
        yield
        started = 0.0 if name == "session" else seconds.get("session", 0.0) - session_before
        seconds[name] = seconds.get(name, 0.0) + time.monotonic() - begun - started
        if self._engine.used is not None:
            self.summary.engine[name] = self._engine.used
        if self._engine.used == executors.SPARK:  # a large stage: the next one would add its memory to what this freed
            pa.default_memory_pool().release_unused()


def run(options: RunOptions, session: Callable[[], "SparkSession"], progress: Progress | None = None) -> Summary:
    """Runs the pipeline, or the stages of it that `options` names.

    `session` makes or returns the Spark session; it is called only when a stage has work.

    Raises:
        SharelensError: bad directories, mixed clusters, a held lake, another lake version, no rows with
            `require_rows`.
    """
    check_lake(options)
    if not options.lake.is_lake():
        check_sources(options)
    with writing(options.lake, options.lock_timeout_s) as writer, ExitStack() as opened:
        try:
            pipeline = Pipeline(options, session, progress or Progress(), writer)
            pipeline.fetch(opened)
            summary = pipeline.go()
        finally:
            remove_fetched(options.lake, but_folders=options.goes_on)
    if options.require_rows and not any(summary.counts.values()):
        raise JobError(f"no new records in {', '.join(options.log_dirs) or options.lake} (--require-rows)")
    return summary
