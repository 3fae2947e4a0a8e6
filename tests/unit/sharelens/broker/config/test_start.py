"""Where a start takes its configuration and its directory from."""

from pathlib import Path

import pytest

from sharelens.broker.config.settings import Settings
from sharelens.broker.config.start import log_directory, read_settings
from sharelens.broker.errors import ConfigError


def test_single_keys_come_before_the_file(tmp_path):
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=3\nmessage.max.bytes=10\n")
    settings = read_settings(file, ["num.partitions=4"])
    assert (settings.integer("num.partitions"), settings.integer("message.max.bytes")) == (4, 10)
    assert read_settings(None, []).integer("num.partitions") == 1


def test_a_file_that_is_no_text_is_refused(tmp_path):
    file = tmp_path / "server.properties"
    file.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="server.properties can't be read: it is no text in UTF-8$"):
        read_settings(file, [])


def test_a_file_with_a_broken_escape_is_refused_with_its_line(tmp_path):
    file = tmp_path / "server.properties"
    file.write_text("a=b\nc=\\u1\n")
    with pytest.raises(ConfigError, match="server.properties:2: "):
        read_settings(file, [])


def test_the_option_overrides_log_dirs_which_overrides_log_dir():
    settings = Settings({"log.dirs": "/a", "log.dir": "/b"})
    assert log_directory(settings, Path("/c")) == Path("/c")
    assert log_directory(settings, None) == Path("/a")
    assert log_directory(Settings({"log.dir": "/b"}), None) == Path("/b")


@pytest.mark.parametrize(
    ("values", "message"), [({}, "give --log-dir"), ({"log.dirs": "/a, /b"}, "one directory only")]
)
def test_no_directory_or_several_are_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        log_directory(Settings(values), None)
