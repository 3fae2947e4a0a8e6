"""New files of a measure's table: one of final rows, which no increment in log order rewrites, and one of open rows."""

from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from lake.lake import LakeReader
from lake.parquet import DataFile, ParquetSink
from lake.tables import TABLES
from measures.catalog import Measure, Rule


def has_final_rows(measure: Measure) -> bool:
    """Whether the table has a column `is_final`."""
    return measure.rule is not Rule.WHOLE


def is_final(path: str) -> bool:
    """Whether a file of a measure's table has final rows."""
    return path.startswith("is_final=true")


class MeasureFiles:
    """Writes rows of a measure to new files, which are part of the table only by a commit."""

    def __init__(self, lake: LakeReader, measure: Measure) -> None:
        self._stack = ExitStack()
        table = TABLES[measure.table]

        def sink(is_final: str) -> ParquetSink:
            values = {"is_final": is_final} if has_final_rows(measure) else {}
            return ParquetSink(lake, table, constants={}, partition_values=values)

        self._open, self._final = sink("false"), sink("true")
        self.write, self.write_final = self._open.write, self._final.write

    def __enter__(self) -> Self:
        self._stack.enter_context(self._open)
        self._stack.enter_context(self._final)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    @property
    def files(self) -> Sequence[DataFile]:
        """The files; complete after the `with` block."""
        return [*self._open.files, *self._final.files]
