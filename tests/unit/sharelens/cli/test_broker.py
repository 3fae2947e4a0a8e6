"""The command of the broker, where it does not start."""

import pytest

from sharelens.cli import main


@pytest.mark.parametrize(
    ("options", "output"),
    [
        (["--listen", "nowhere"], "--listen 'nowhere' is no HOST:PORT"),
        (["--listen", "127.0.0.1:99999"], "listener '127.0.0.1:99999': port 99999 is above 65535"),
        (["--set", "log.retention.ms"], "--set 'log.retention.ms' is no key=value"),
        (["--feature", "share.version"], "--feature 'share.version' is no feature=level, such as share.version=2"),
        (["--fault", "nonsense"], "--fault 'nonsense': 'nonsense' must be KEY=VALUE"),
        (["--fault", "action=drop"], "--fault 'action=drop' needs either api=NAME, append=TOPIC or open=TOPIC"),
    ],
)
def test_an_invalid_option_is_a_usage_error(options, output, tmp_path, capsys):
    assert main(["broker", "start", "--log-dir", str(tmp_path / "log"), *options]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"sharelens: {output}")
    assert captured.err.count("\n") == 1
    assert not (tmp_path / "log").exists()


def test_a_value_out_of_range_stops_the_start_with_key_and_range(tmp_path, capsys):
    options = ["--set", "group.share.delivery.count.limit=1"]
    assert main(["broker", "start", "--log-dir", str(tmp_path / "log"), *options]) == 1
    assert capsys.readouterr().err == (
        "sharelens: group.share.delivery.count.limit='1': takes an integer from 2 to 10\n"
    )
