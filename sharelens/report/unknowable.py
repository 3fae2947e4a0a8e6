"""What no report can say, however good the evidence."""

CANNOT_KNOW = (
    "Who had a record, or has it now: the log holds outcomes, not acquisitions.",
    "Why a record became available again: a release, a lock that ran out and a member that left look the same.",
    "Whether a record that stands still is held by a member or was never delivered: both look the same.",
    "Whether a record was processed: acknowledged means that a consumer said so.",
    "The broker's own start offset: the logged one trails it by a write.",
    "Records of aborted transactions: for groups that read committed records the broker archives them in memory alone.",
    "End offsets of the past for sure: they are inferred from the timestamps of batches, which producers set.",
    "What lay in the log before the evidence begins, or in its gaps.",
)
"""One sentence each."""
