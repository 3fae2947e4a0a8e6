"""Where the windows of user partitions begin and end by the state log, whatever dictionaries its text has."""

import pyarrow as pa

from sharelens.measures.account_windows import reaches_of
from state_model.columnar import schemas
from state_model.columnar.replay import open_ranges, replay_records
from state_model.uuids import ZERO_UUID
from tests.logs.replay_logs import parsed, table

LOG = """
    0 snapshot start=3 snapshot=0
    0 update start=3 3-5 acknowledged 1, 6-7 available 1
    1 snapshot start=-1 snapshot=0
    2 snapshot start=4 snapshot=0
"""


def test_a_user_partition_reaches_from_its_lowest_start_offset_to_above_all_that_is_named():
    done = replay_records(table(parsed(LOG)))
    deliveries = pa.concat_tables([done.closed, open_ranges(done.state)])
    expected = {(ZERO_UUID, 0): (3, 8), (ZERO_UUID, 2): (4, 4)}
    assert reaches_of([(done.history, deliveries)]) == expected
    encoded = [rows.cast(schemas.encoded(rows.schema)) for rows in (done.history, deliveries)]
    assert reaches_of([(encoded[0], encoded[1])]) == expected
