"""What the tests of recorded logs share."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from sharelens.source.request import Source
from sharelens.tables import opening
from sharelens.tables.port import Tables
from tests.once import run_folder


@pytest.fixture(scope="module")
def evidence_opened_once() -> Iterator[None]:
    """Opens each recorded log and its lake once for all questions of a module: none of them changes."""
    evidence_by_source: dict[Source, Tables] = {}
    open_evidence = opening.open_evidence

    def open_once(source: Source) -> nullcontext[Tables]:
        if not all(run_folder() in Path(folder).parents for folder in (source.lake, *source.log_dirs) if folder):
            return open_evidence(source)  # type: ignore[return-value]
        if source not in evidence_by_source:
            evidence_by_source[source] = open_evidence(source)
        return nullcontext(evidence_by_source[source])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "open_evidence", open_once)
        yield
