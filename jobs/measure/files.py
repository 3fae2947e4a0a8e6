"""Where the rows of a measure go: files of final rows and of others, and of hours one for each of the last days.

    is_final=false   what the next run may make anew
    is_final=true    by hour:  older | the day before | the newest day   others: all together

A new record may settle an offset that was open for hours, and then its hour is made anew: so only files of the last
days are written anew.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from jobs.measure.inputs import HISTORY
from jobs.measure.rows import Measure
from lake.lake import Lake, LakeReader
from lake.parquet import DataFile, ParquetSink
from lake.tables import TABLES
from measures.settled import DAY_MS

DAYS = 2
"""The last ones, which have files of their own."""
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def newest_ms(lake: Lake) -> int:
    """The log time of the newest record of the histories; 0 for none."""
    return int(lake.snapshot(HISTORY).row_groups.integers("log_time_ms").high.max(initial=0))


def is_final_values(measure: Measure, *, final: bool) -> dict[str, str]:
    """The partition values of files; none where rows are not told apart."""
    return {} if measure.order is None else {"is_final": str(final).lower()}


class MeasureFiles:
    """New files of a measure's table; part of it only by a commit. `newest`: log time of the newest record."""

    def __init__(self, lake: LakeReader, measure: Measure, newest: int) -> None:
        self._measure = measure
        self._newest_day = newest // DAY_MS
        self._stack = ExitStack()
        table = TABLES[measure.table]

        def sink(*, final: bool) -> ParquetSink:
            return ParquetSink(lake, table, constants={}, partition_values=is_final_values(measure, final=final))

        self._open = sink(final=False)
        self._final = [sink(final=True) for _ in range(1 + DAYS)]

    def __enter__(self) -> "MeasureFiles":
        for one in (self._open, *self._final):
            self._stack.enter_context(one)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    @property
    def files(self) -> Sequence[DataFile]:
        """The files; complete after the `with` block."""
        return [file for one in (self._open, *self._final) for file in one.files]

    def write(self, rows: pa.Table, **constants: object) -> None:
        """Appends rows that are not final. `constants`: columns that these rows share."""
        self._open.write(rows, **constants)

    def write_final(self, rows: pa.Table) -> None:
        """Appends final rows."""
        if self._measure.order != "hour_ms":
            self._final[0].write(rows)
            return
        days = self._measure.values(rows) // DAY_MS - self._newest_day + DAYS
        for number, one in enumerate(self._final):
            one.write(rows.filter(pa.array(days.clip(0, DAYS) == number)))
