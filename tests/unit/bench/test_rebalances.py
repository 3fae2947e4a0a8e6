from functools import partial

import pytest

from bench.rebalances import consumer_rebalance_s, streams_rebalance_s


@pytest.mark.parametrize(
    "rebalance_s",
    [
        pytest.param(partial(streams_rebalance_s, tasks=20), id="streams"),
        pytest.param(partial(consumer_rebalance_s, partitions=20), id="consumer"),
    ],
)
def test_a_rebalance_ends_and_takes_time(rebalance_s, tmp_path):
    assert 0 < rebalance_s(tmp_path / "log", members=3) < 5
