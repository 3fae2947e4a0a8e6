"""User partitions that live share partitions need; folders of a deleted topic can not be copied any more."""

from pathlib import Path

import pytest

from sharelens.lake.scan import open_lake
from sharelens.source.request import Source
from sharelens.tables.logs.tables import open_log_tables
from sharelens.tables.missing_topics import missing_user_partitions
from sharelens.tables.opening import open_cut
from state_model.metadata.schemas import REMOVE_TOPIC
from tests.logs.metadata_logs import topic, value_of, write_metadata
from tests.logs.state_logs import ORDERS_ID, START_MS, snapshot, tombstone, write_log_directory
from tests.processes.in_process import make_lake

pytestmark = pytest.mark.slow

GONE_ID = "AAAAAAAAAAAAAAAAAAAACQ"
STORY = [
    *(snapshot("g", number) for number in range(3)),
    *(snapshot("h", number, topic_id=GONE_ID) for number in range(2)),
    tombstone("g", 2, at_ms=START_MS + 1),
    tombstone("h", 0, topic_id=GONE_ID, at_ms=START_MS + 2),
]
USER_PARTITIONS = [(ORDERS_ID, 0), (ORDERS_ID, 1), (ORDERS_ID, 2), (GONE_ID, 0), (GONE_ID, 1)]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("knows_deletion", [False, True])
def test_live_share_partitions_alone_need_user_partitions(knows_deletion: bool, tmp_path: Path) -> None:
    """`orders-0` has a folder; the state of `gone-1` is left, which the metadata log may show deleted."""
    logs = write_log_directory(tmp_path / "logs", STORY)
    if knows_deletion:
        records = [topic("orders", ORDERS_ID), topic("gone", GONE_ID), value_of(REMOVE_TOPIC, {"topic_id": GONE_ID})]
        write_metadata(logs, [(START_MS + number, record) for number, record in enumerate(records)])
    make_lake(tmp_path / "lake", logs, stages=("ingest", "decode", "replay", "measure", "publish"))
    expected = {(ORDERS_ID, 1)} | (set() if knows_deletion else {(GONE_ID, 1)})
    for tables in (open_log_tables(Source(log_dirs=(str(logs),))), open_cut(open_lake(tmp_path / "lake"), None)):
        assert missing_user_partitions(tables, USER_PARTITIONS) == expected
        assert missing_user_partitions(tables, [(ORDERS_ID, 0)]) == set()
