"""Reads the figures of a lake or of log directories, and makes the text of an export; again only when it changed."""

import time
from collections.abc import Callable, Sequence

from sharelens.lake.scan import Cut, open_lake
from sharelens.metrics.figures import Figures, figures
from sharelens.metrics.samples import Export, export
from sharelens.source.request import Source
from sharelens.tables.lakes.clusters import choose_cluster, clusters
from sharelens.tables.opening import open_cut

Render = Callable[[Export], bytes]


def read(source: Source) -> list[Figures]:
    """The figures of every cluster of the lake (or of one), or of the log directories.

    Raises:
        SharelensError: there is no lake, no share-group state, or no such cluster.
    """
    if source.lake is not None:
        return _read_lake(open_lake(source.lake), source)
    from sharelens.tables.opening import open_evidence

    with open_evidence(source) as evidence:
        return [figures(evidence)]


def _read_lake(lake: Cut, source: Source) -> list[Figures]:
    there = clusters(lake)
    cluster_ids = there if source.cluster_id is None and there else [choose_cluster(lake, source.cluster_id)]
    return [figures(open_cut(lake, cluster_id, source.settings_files)) for cluster_id in cluster_ids]


RESTS = 4
"""How many times the processor time of a read of a cluster, which grows with its logs, pass before the next one."""


class Page:
    """The text of the newest export. A lake is read again when something was published, logs each time; neither more
    often than every `refresh_s` seconds, and a cluster so that reading takes a fifth of a core at most (RESTS).
    """

    def __init__(self, source: Source, max_series: int, render: Render, refresh_s: float) -> None:
        self._source = source
        self._max_series = max_series
        self._render = render
        self._refresh_s = refresh_s
        self._rest_s = refresh_s
        self._looked_s: float | None = None
        self._publication: object = None
        self._text = b""

    def text(self) -> bytes:
        """The text as of now, or that of the last read while it may not read again.

        Raises:
            SharelensError: as `read`.
        """
        now_s = time.monotonic()
        if self._looked_s is not None and now_s - self._looked_s < self._rest_s:
            return self._text
        self._looked_s = None
        if self._source.lake is None:
            begun_s = time.process_time()
            self._make(read(self._source))
            if self._source.live is not None:
                self._rest_s = max(self._refresh_s, RESTS * (time.process_time() - begun_s))
        else:
            lake = open_lake(self._source.lake)
            if lake.publication != self._publication:
                self._make(_read_lake(lake, self._source))
                self._publication = lake.publication
        self._looked_s = time.monotonic()
        return self._text

    def _make(self, exported: Sequence[Figures]) -> None:
        self._text = self._render(export(exported, self._max_series))
