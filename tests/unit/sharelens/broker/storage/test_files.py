"""Open files: what was appended is found by whoever asks for the file, buffered or not."""

import os

import pytest

from sharelens.broker.storage.files import OpenFiles


@pytest.mark.parametrize("buffer_bytes", [0, 4, 1000])
def test_who_gets_a_descriptor_finds_all_that_was_appended(tmp_path, buffer_bytes):
    files = OpenFiles(2, buffer_bytes=buffer_bytes)
    paths = [str(tmp_path / name) for name in "abc"]
    written = dict.fromkeys(paths, b"")
    for number in range(30):
        path = paths[number % 3]
        data = b"%d," % number
        files.append(path, (data[:1], memoryview(data)[1:]), len(data), len(written[path]))
        written[path] += data
        requested = paths[number % 2]
        if number % 5 == 0:
            assert os.pread(files.get(requested), 1000, 0) == written[requested]
    files.forget(paths[2])
    assert (tmp_path / "c").read_bytes() == written[paths[2]]
    files.close()
    assert [(tmp_path / name).read_bytes() for name in "abc"] == [written[path] for path in paths]


def test_what_waits_is_at_most_a_buffer_of_each_file(tmp_path):
    files = OpenFiles(buffer_bytes=10)
    path = tmp_path / "a"
    for number in range(5):
        files.append(str(path), (b"abc",), 3, 3 * number)
        size = path.stat().st_size if path.exists() else 0
        assert 3 * (number + 1) - size < 10
    files.close()
    assert path.read_bytes() == b"abc" * 5
