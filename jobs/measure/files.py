"""New files of a measure's table: one of final rows, which no increment in log order rewrites, and one of open rows."""

from collections.abc import Sequence
from contextlib import ExitStack

from sharelens.lake.lake import LakeReader
from sharelens.lake.parquet import DataFile, ParquetSink
from sharelens.lake.tables import TABLES
from sharelens.measures.catalog import Measure, Rule


def has_final_rows(measure: Measure) -> bool:
    """Whether the table has a column `is_final`."""
    return measure.rule is not Rule.WHOLE_LOG


def is_final(path: str) -> bool:
    """Whether a file of a measure's table has final rows."""
    return path.startswith("is_final=true")


class MeasureFiles(ExitStack):
    """Writes rows of a measure to new files, which are part of the table only by a commit."""

    def __init__(self, lake: LakeReader, measure: Measure) -> None:
        super().__init__()

        def sink(is_final: str) -> ParquetSink:
            values = {"is_final": is_final} if has_final_rows(measure) else {}
            return self.enter_context(ParquetSink(lake, TABLES[measure.table], constants={}, partition_values=values))

        self._open, self._final = sink("false"), sink("true")
        self.write, self.write_final = self._open.write, self._final.write

    @property
    def files(self) -> Sequence[DataFile]:
        """The files; complete after the `with` block."""
        return [*self._open.files, *self._final.files]
