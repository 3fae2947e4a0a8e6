"""Evidence straight from a running cluster: its logs, fetched into log directories."""

from collections.abc import Sequence

from kafka_log.layout import LogDirectory
from sharelens.live import LiveCluster
from sharelens.questions.log_evidence import LogEvidence
from sharelens.request import Source


class LiveEvidence(LogEvidence):
    """Log directories that a cluster's logs were fetched into; now is when they were fetched."""

    def __init__(self, source: Source, directories: Sequence[LogDirectory], cluster: LiveCluster) -> None:
        super().__init__(source, directories)
        self._live = cluster

    @property
    def place(self) -> str:
        """The address of the cluster."""
        return self._live.address.bootstrap_server

    def read_until_ms(self) -> int | None:
        """When the logs were fetched."""
        return self._live.read_until_ms
