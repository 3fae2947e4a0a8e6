"""Observations of settings as rows and back."""

import pyarrow as pa

from sharelens.lake.settings_rows import SETTING, observations_of, setting_rows
from sharelens.measures.settings.observations import Observation
from tests.settings_in_files import broker_config, end_offsets, group_configs


def rows_of(run: int, *observations: Observation) -> pa.Table:
    rows = setting_rows(observations)
    assert rows.schema.equals(SETTING)
    return rows.append_column("run_id", pa.array([run] * rows.num_rows, pa.int64()))


def test_rows_give_the_observations_again() -> None:
    observations = [broker_config(4), end_offsets(5, orders=9, other=10), group_configs(7, g=3)]
    assert observations_of(rows_of(1, *observations)) == observations


def test_a_file_without_entries_is_kept() -> None:
    assert observations_of(rows_of(1, broker_config(None, 3))) == [broker_config(None, 3)]


def test_of_one_kind_and_time_the_newest_run_counts() -> None:
    rows = pa.concat_tables([rows_of(2, group_configs(7, g=5)), rows_of(1, group_configs(7, g=3, h=4))])
    assert observations_of(rows) == [group_configs(7, g=5)]
