"""The page of a source that may answer late or not at all: a running cluster."""

import logging
import threading
import time
from collections.abc import Callable

from sharelens.metrics.catalog import LAST_SUCCESS, UP, Metric
from sharelens.metrics.samples import Export, Sample
from state_model.errors import SharelensError

PATIENCE_S = 5.0
"""How long a scrape waits for a read; Prometheus gives up after 10 s."""
_log = logging.getLogger(__name__)


class WatchedPage:
    """The text of the newest read, and whether it got through. Reads go on in a thread, one at a time.

    A scrape waits `patience_s` for a read, and gets the outcome of the one before if that is not enough. Behind a read
    that failed the page has no figures but UP (0) and LAST_SUCCESS: unknown values have no sample.
    """

    def __init__(
        self, read: Callable[[], bytes], render: Callable[[Export], bytes], patience_s: float = PATIENCE_S
    ) -> None:
        self._read = read
        self._render = render
        self._patience_s = patience_s
        self._text: bytes | None = None
        self._succeeded_s: float | None = None
        self._problem = ""
        self._reader: threading.Thread | None = None

    def first(self) -> None:
        """Reads in the caller's thread. Raises SharelensError: what the read raises."""
        self._text, self._succeeded_s = self._read(), time.time()

    def text(self) -> bytes:
        """The page as of now, or as of the last read that has ended; one caller at a time."""
        if self._reader is None or not self._reader.is_alive():
            self._reader = threading.Thread(target=self._go, name="read", daemon=True)
            self._reader.start()
        self._reader.join(self._patience_s)
        text = self._text
        values: dict[Metric, float] = {UP: int(text is not None)}
        if self._succeeded_s is not None:
            values[LAST_SUCCESS] = self._succeeded_s
        samples = {metric: [Sample(labels=(), value=value, of=None)] for metric, value in values.items()}
        return (text or b"") + self._render(Export(figures=(), samples=samples, left_out=0))

    def _go(self) -> None:
        try:
            self.first()
            self._problem = ""
        except (SharelensError, OSError) as error:
            self._text = None
            if str(error) != self._problem:
                _log.warning("no figures: %s", error)
            self._problem = str(error)
