"""The reason codes of PROBLEM rows, each with its meaning."""

from typing import Final

REASONS: Final = {
    "bad_header": "no batch header where the batch before it ended; reading went on at the next good batch",
    "crc_mismatch": "a batch whose checksum does not fit its bytes",
    "truncated": "a file ends inside a batch: in a closed segment, or below the committed end",
    "out_of_order": "a batch whose offsets its neighbours contradict: repeated, moved, or with a broken base offset",
    "unsupported_magic": "message sets from before Kafka 0.11",
    "vanished": "a segment was deleted while the log was read",
    "unreadable": "a segment can't be opened or read; the detail has the message of the operating system",
    "superseded": "another copy holds the offsets under a later leader epoch: this batch was truncated there",
    "bad_compression": "a batch that does not decompress, though its checksum fits",
    "unsupported_codec": "a batch compressed by a codec that Kafka does not know",
    "oversized": "a batch that would take more than the bounds: decompressed bytes, or number of records",
    "bad_record_count": "a batch whose header announces more records than its bytes can hold",
    "incomplete_snapshot": "a metadata snapshot that is damaged, or was not finished",
    "malformed_records": "a batch whose records don't parse or don't fill it, though its checksum fits",
}
