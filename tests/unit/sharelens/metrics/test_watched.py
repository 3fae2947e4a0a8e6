"""The page of a source that may hang or be away: a scrape never waits long, and says so."""

import threading
import time

import pytest

from sharelens.metrics.prometheus import prometheus_text
from sharelens.metrics.watched import WatchedPage
from state_model.errors import SharelensError


class AwayError(SharelensError):
    """A cluster that is away."""


class Cluster:
    """Answers with figures, fails, or hangs until `answers` is set."""

    def __init__(self) -> None:
        self.is_away = False
        self.answers = threading.Event()
        self.answers.set()
        self.reads = 0

    def read(self) -> bytes:
        self.reads += 1
        assert self.answers.wait(60)
        if self.is_away:
            raise AwayError("no broker answers")
        return f"figures {self.reads}\n".encode()


def values(text: bytes) -> dict[str, float]:
    lines = (line.split() for line in text.decode().splitlines() if line.startswith("sharelens_"))
    return {name: float(value) for name, value in lines}


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_a_page_has_the_figures_and_is_up(cluster):
    text = WatchedPage(cluster.read, prometheus_text).text()
    assert text.startswith(b"figures 1\n")
    assert values(text)["sharelens_up"] == 1
    assert values(text)["sharelens_last_success_timestamp_seconds"] == pytest.approx(time.time(), abs=60)


def test_a_cluster_that_is_away_leaves_the_time_of_the_last_success_and_no_figures(cluster):
    page = WatchedPage(cluster.read, prometheus_text)
    success = values(page.text())["sharelens_last_success_timestamp_seconds"]
    cluster.is_away = True
    text = page.text()
    assert not text.startswith(b"figures")
    assert values(text) == {"sharelens_up": 0, "sharelens_last_success_timestamp_seconds": success}
    cluster.is_away = False
    assert values(page.text())["sharelens_up"] == 1


@pytest.mark.slow
def test_a_scrape_does_not_wait_for_a_cluster_that_hangs_and_reads_it_once(cluster):
    page = WatchedPage(cluster.read, prometheus_text, patience_s=0.05)
    page.first()
    cluster.answers.clear()
    assert [page.text()[:9] for _ in range(3)] == [b"figures 1"] * 3
    assert cluster.reads == 2
    cluster.answers.set()
    while b"figures 1" in page.text():
        time.sleep(0.01)
    assert values(page.text())["sharelens_up"] == 1


@pytest.mark.slow
def test_a_cluster_that_hangs_and_then_fails_is_down(cluster):
    page = WatchedPage(cluster.read, prometheus_text, patience_s=0.05)
    page.first()
    cluster.answers.clear()
    cluster.is_away = True
    assert values(page.text())["sharelens_up"] == 1
    cluster.answers.set()
    while values(page.text())["sharelens_up"]:
        time.sleep(0.01)
    assert not page.text().startswith(b"figures")


def test_a_reason_is_logged_once(cluster, caplog):
    cluster.is_away = True
    page = WatchedPage(cluster.read, prometheus_text)
    for _ in range(3):
        page.text()
    assert [record.getMessage() for record in caplog.records] == ["no figures: no broker answers"]


def test_the_first_read_raises(cluster):
    cluster.is_away = True
    with pytest.raises(AwayError):
        WatchedPage(cluster.read, prometheus_text).first()
