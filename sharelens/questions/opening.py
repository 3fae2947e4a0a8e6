"""Opens the evidence that a command line names."""

from sharelens.questions.evidence import Evidence
from sharelens.request import Source


def open_evidence(source: Source) -> Evidence:
    """The lake at its published cut, or the log directories; imports only the modules of that source."""
    if source.lake is not None:
        from sharelens.questions.lake_evidence import open_lake_evidence

        return open_lake_evidence(source.lake, source.cluster_id, source.settings_files)
    from sharelens.questions.log_evidence import open_log_evidence

    return open_log_evidence(source)
