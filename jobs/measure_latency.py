"""Rows of gold.latency and gold.attempts: what was settled, how old it was, how many deliveries it took.

Both are made from the whole histories of the share partitions that a run touched: what an offset became first in its
life is not told by the newest records alone.
"""

import pyarrow as pa

from jobs.measure_inputs import Inputs
from lake import user_topics
from measures.ages import HEADER_COLUMNS, Ages
from measures.latency import By, attempts, latency
from measures.settled import Settled, settled


def latency_rows(inputs: Inputs) -> pa.Table:
    """LATENCY rows."""
    history, done, ages = inputs.once("settled", lambda: _read(inputs))
    return latency(done, ages, history, By())


def attempts_rows(inputs: Inputs) -> pa.Table:
    """ATTEMPTS rows."""
    history, done, ages = inputs.once("settled", lambda: _read(inputs))
    return attempts(done, ages.gaps(), history, By())


def _read(inputs: Inputs) -> tuple[pa.Table, Settled, Ages]:
    log_topic = pa.scalar(inputs.task.log_topic_id, pa.string())
    history, deliveries = (
        rows
        if "log_topic_id" in rows.column_names
        else rows.append_column("log_topic_id", pa.repeat(log_topic, rows.num_rows))
        for rows in (inputs.history, inputs.deliveries)
    )
    done = settled(history, deliveries)
    ages = Ages(done)
    for batches in user_topics.batches(inputs.scan, inputs.topic_books, ages.begins(), HEADER_COLUMNS):
        ages.take(batches)
    return history, done, ages
