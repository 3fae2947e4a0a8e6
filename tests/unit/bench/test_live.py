"""The bench of a running cluster: how the ages of records are taken from a lake."""

from pathlib import Path

import pytest

from bench.live import record_ages_ms
from sharelens.lake.scan import open_lake
from tests.logs.state_logs import START_MS, snapshot, update, write_log_directory
from tests.processes.in_process import make_lake

pytestmark = pytest.mark.slow


@pytest.mark.soak
def test_the_age_of_a_record_lasts_until_the_first_publication_that_has_it(tmp_path: Path) -> None:
    records = [snapshot("g", start=0), *(update("g", start=n, at_ms=START_MS + n * 1000) for n in (2, 5))]
    published = []
    for end in (1, 3):
        make_lake(tmp_path / "lake", write_log_directory(tmp_path / str(end), records[:end]))
        published.append(open_lake(tmp_path / "lake").publication["published_at_ms"])
    ages = sorted(record_ages_ms(tmp_path / "lake", 0))
    first, second = published
    assert ages == sorted([first - START_MS, second - START_MS - 2000, second - START_MS - 5000])
    assert list(record_ages_ms(tmp_path / "lake", START_MS + 5000)) == [second - START_MS - 5000]
