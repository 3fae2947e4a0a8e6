"""Measures of share partitions, from histories: rows of the gold tables of the same names.

    history.transform(frames.stalls, deliveries, headers=headers, extents=extents)

`sharelens.measures.catalog` computes them; a group of rows, those of one user partition, is its input here. A group
is computed in one task, which holds the histories of that user partition.
"""

from typing import TYPE_CHECKING

from sharelens.frames.group_inputs import of_each_user_partition, of_user_partitions
from sharelens.frames.reconciled import dlq_reconciliation, with_causes
from sharelens.measures import account as accounts
from sharelens.measures import cost as costs
from sharelens.measures.catalog import STAGED
from sharelens.measures.schemas import ACCOUNTED, COST
from sharelens.measures.settings.over_time import NO_SETTINGS, GroupSettings
from state_model.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def lag(states: "DataFrame", *, headers: "DataFrame | None" = None, extents: "DataFrame | None" = None) -> "DataFrame":
    """How far each share partition is behind: Kafka's own lag (KIP-1226), and what the state batches say.

    Args:
        states: rows of `frames.share_partition_states`, `frames.states_as_of` or gold.share_partition_state.
        headers: TOPIC_BATCH rows of the user topics (bronze.topic_batch); None: no last stable offset is known.
        extents: `topic_id`, `partition`, `log_start_offset`, `end_offset` and `end_offset_source` of user partitions;
            None: no end is known, so there is no lag, and `unknown_reason` says so.

    Returns:
        LAG rows (the columns of gold.lag but cluster_id and run_id), in no order; `topic` is null.

    Raises:
        UsageError: a column is missing or has another type.
    """
    return _measured("lag", "lag", NO_SETTINGS, states=states, headers=headers, extents=extents)


def lag_over_time(
    share_partition_history: "DataFrame", delivery_history: "DataFrame", *, headers: "DataFrame | None" = None
) -> "DataFrame":
    """Lag, start and end of each share partition at minutes of log time, where one of them changed.

    Args:
        share_partition_history, delivery_history: as in `stalls`.
        headers: as in `lag`; without them no end is known, and no lag.

    Returns:
        LAG_OVER_TIME rows (the columns of gold.lag_over_time but cluster_id, is_final and run_id), in no order; `topic`
        is null. A row holds until the next one of its share partition.

    Raises:
        UsageError: a column is missing or has another type.
    """
    return _of_histories("lag_over_time", "lag_over_time", share_partition_history, delivery_history, headers)


def stalls(
    share_partition_history: "DataFrame",
    delivery_history: "DataFrame",
    *,
    headers: "DataFrame | None" = None,
    extents: "DataFrame | None" = None,
    settings: GroupSettings = NO_SETTINGS,
) -> "DataFrame":
    """The intervals in which a share partition's first incomplete offset stood still although there was work.

    Args:
        share_partition_history: rows of `frames.share_partition_history` or gold.share_partition_history, whole.
        delivery_history: rows of `frames.delivery_history` or gold.delivery_history of the same records.
        headers, extents: as in `lag`; without headers a silent stall and an idle share partition look alike.
        settings: of the groups (`frames.group_settings`); without them no window is known to be full.

    Returns:
        STALL rows (the columns of gold.stall but cluster_id, topic, is_final and run_id), in no order: what lasted a
        minute, and what stands still at the end, whatever its age.

    Raises:
        UsageError: a column is missing or has another type.
    """
    return _of_histories("stall", "stalls", share_partition_history, delivery_history, headers, extents, settings)


def poison_records(
    share_partition_history: "DataFrame",
    delivery_history: "DataFrame",
    *,
    headers: "DataFrame | None" = None,
    dead_letters: "DataFrame | None" = None,
    topic_names: "DataFrame | None" = None,
    searched: "DataFrame | None" = None,
    settings: GroupSettings = NO_SETTINGS,
) -> "DataFrame":
    """The record offsets that groups archived, or that are ARCHIVING, with the cause if it is known.

    Args:
        share_partition_history, delivery_history: as in `stalls`.
        headers: as in `lag`; without them gaps count as records.
        dead_letters, topic_names, searched: as in `dlq_reconciliation`, all three or none; without them no cause comes
            from a dead letter. With them the rows are computed twice, unless Spark finds the exchange again.
        settings: as in `stalls`; without them the delivery count limit is unknown, and so is the cause at the limit.

    Returns:
        POISON_RECORD rows (the columns of gold.poison_record but cluster_id, topic, is_final and run_id), in no order.

    Raises:
        UsageError: a column is missing or has another type; or one of the three is missing.
    """
    function, histories = "poison_records", (share_partition_history, delivery_history)
    rows = _of_histories("poison_record", function, *histories, headers, settings=settings)
    of_letters = {"dead_letters": dead_letters, "topic_names": topic_names, "searched": searched}
    missing = [name for name, frame in of_letters.items() if frame is None]
    if dead_letters is None or topic_names is None or searched is None:
        if len(missing) < len(of_letters):
            raise UsageError(f"frames.{function}: dead letters need {', '.join(missing)}, too")
        return rows
    verdicts = dlq_reconciliation(
        rows, dead_letters, share_partition_history, topic_names=topic_names, searched=searched, settings=settings
    )
    return with_causes(rows, verdicts, function)


def redelivered_records(share_partition_history: "DataFrame", delivery_history: "DataFrame") -> "DataFrame":
    """The record offsets that were delivered again although an outcome had been logged.

    Args:
        share_partition_history, delivery_history: as in `stalls`.

    Returns:
        REDELIVERED rows (the columns of gold.redelivered_record but cluster_id, topic, is_final and run_id), in no
        order.

    Raises:
        UsageError: a column is missing or has another type.
    """
    return _of_histories("redelivered_record", "redelivered_records", share_partition_history, delivery_history)


def progress(
    share_partition_history: "DataFrame",
    delivery_history: "DataFrame",
    *,
    headers: "DataFrame | None" = None,
    settings: GroupSettings = NO_SETTINGS,
) -> "DataFrame":
    """The first incomplete offset of each share partition, and since which record it is that one.

    Args:
        share_partition_history, delivery_history: as in `stalls`.
        headers: as in `lag`; without them offsets that hold no record are not passed.
        settings: as in `stalls`; with them a group that reads committed records passes those of aborted transactions.

    Returns:
        PROGRESS rows (the columns of gold.progress but cluster_id and run_id), in no order.

    Raises:
        UsageError: a column is missing or has another type.
    """
    return _of_histories("progress", "progress", share_partition_history, delivery_history, headers, settings=settings)


def life(share_partition_history: "DataFrame", delivery_history: "DataFrame") -> "DataFrame":
    """The events in the life of each share partition: creation, resets, deletion, changes of epochs.

    Args:
        share_partition_history, delivery_history: as in `stalls`.

    Returns:
        LIFE rows (the columns of gold.life_event but cluster_id, topic, is_final and run_id), in no order.

    Raises:
        UsageError: a column is missing or has another type.
    """
    return _of_histories("life_event", "life", share_partition_history, delivery_history)


def latency(
    share_partition_history: "DataFrame", delivery_history: "DataFrame", *, headers: "DataFrame | None" = None
) -> "DataFrame":
    """How old records were when they were settled, by hour and outcome.

    Args:
        share_partition_history, delivery_history: as in `stalls`.
        headers: as in `lag`; without them no age is known.

    Returns:
        The columns of gold.latency but cluster_id, topic, is_final and run_id, in no order: one row a block of record
        offsets, whose histograms add up.

    Raises:
        UsageError: a column is missing or has another type.
    """
    return _of_histories("latency", "latency", share_partition_history, delivery_history, headers)


def attempts(
    share_partition_history: "DataFrame", delivery_history: "DataFrame", *, headers: "DataFrame | None" = None
) -> "DataFrame":
    """How many deliveries records took until they were settled, by hour and outcome.

    Args:
        share_partition_history, delivery_history: as in `stalls`.
        headers: as in `lag`; without them archived offsets without a record count as settled.

    Returns:
        The columns of gold.attempts but cluster_id, topic, is_final and run_id, in no order: one row a block of record
        offsets, which add up.

    Raises:
        UsageError: a column is missing or has another type.
    """
    return _of_histories("attempts", "attempts", share_partition_history, delivery_history, headers)


def account(
    share_partition_history: "DataFrame",
    delivery_history: "DataFrame",
    *,
    headers: "DataFrame | None" = None,
    extents: "DataFrame | None" = None,
    losses: "DataFrame | None" = None,
) -> "DataFrame":
    """The class of every record offset of each share partition; each offset has exactly one.

    The window of a user partition begins with its log start offset, or the lowest start offset of a group, and ends
    with its end, or above all that the state log names.

    Args:
        share_partition_history, delivery_history: as in `stalls`.
        headers, extents: as in `lag`; headers say why offsets were passed without an outcome.
        losses: ranges that the records lack (`frames.losses`): offsets whose outcome may lie there are
            not_in_evidence.

    Returns:
        ACCOUNTED rows (`sharelens account --list`, without cluster_id, topic and marks of completeness), in no order:
        ranges of offsets with a class and a reason, which are disjoint and cover the window.

    Raises:
        UsageError: a column is missing or has another type.
    """
    function = "account"
    rows = {"share_partition_history": share_partition_history, "delivery_history": delivery_history}
    rows |= {name: frame for name, frame in (("headers", headers), ("extents", extents)) if frame is not None}
    if losses is not None:
        rows["losses"] = of_each_user_partition(losses, share_partition_history, function)
    return of_user_partitions(accounts.rows, ACCOUNTED, function, NO_SETTINGS, **rows)


def cost(
    share_records: "DataFrame", share_partition_history: "DataFrame", delivery_history: "DataFrame"
) -> "DataFrame":
    """Records, bytes and snapshots that the state of each share partition costs, also for each acknowledged offset.

    Args:
        share_records: SHARE_RECORD rows (`frames.share_records`, silver.share_record).
        share_partition_history, delivery_history: of the same records, as in `stalls`.

    Returns:
        COST rows (`sharelens cost`, without cluster_id, topic and marks of completeness), in no order.

    Raises:
        UsageError: a column is missing or has another type.
    """
    rows = {"share_partition_history": share_partition_history, "delivery_history": delivery_history}
    return of_user_partitions(costs.rows, COST, "cost", NO_SETTINGS, records=share_records, **rows)


def _of_histories(
    measure: str,
    function: str,
    history: "DataFrame",
    deliveries: "DataFrame",
    headers: "DataFrame | None" = None,
    extents: "DataFrame | None" = None,
    settings: GroupSettings = NO_SETTINGS,
) -> "DataFrame":
    rows = {"share_partition_history": history, "delivery_history": deliveries, "headers": headers, "extents": extents}
    return _measured(measure, function, settings, **rows)


def _measured(measure: str, function: str, settings: GroupSettings, **arguments: "DataFrame | None") -> "DataFrame":
    """The rows of a measure of the catalog, computed for each user partition."""
    return of_user_partitions(STAGED[measure].pure_function, STAGED[measure].schema, function, settings, **arguments)
