"""Facts that no report can have."""

CANNOT_KNOW = (
    "Which member had or has a record: the log has outcomes, not acquisitions.",
    "Why a record became available again: a release, an expired lock and a member that left look the same.",
    "Whether a stalled record is acquired by a member or was never delivered: both look the same.",
    "Whether a record was processed: acknowledged means that a consumer acknowledged it.",
    "The broker's own start offset: the logged start offset may be one write behind.",
    "Records of aborted transactions: for groups that read committed records the broker archives them in memory alone.",
    "Exact end offsets of the past: they are inferred from batch timestamps, which producers set.",
)
"""About share groups, one sentence each."""
CANNOT_KNOW_OF_STREAMS = (
    "Which topic a streams group that is not ready lacks: the log says only that the topics do not fit its topology.",
    "Whether a member of a streams group left or was fenced: the records are the same.",
    "Whether a member processes a task: the log has assignments, and offsets as they are committed.",
)
CANNOT_KNOW_OF_CONSUMERS = (
    "Whether a member of a consumer group left or was fenced: the records are the same.",
    "Whether a consumer group whose records ended was deleted, or is a classic group again.",
    "Whether a member of a consumer group processes a partition: the log has assignments, and offsets as committed.",
)
NOT_THERE = ("Records before the beginning of the evidence, or in its gaps.",)
