from bench.rebalances import rebalance_s


def test_a_rebalance_ends_and_takes_time(tmp_path):
    assert 0 < rebalance_s(tmp_path / "log", tasks=20, members=3) < 5
