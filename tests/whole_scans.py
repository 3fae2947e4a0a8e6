"""Refuses scans of whole tables, so that a test shows that a question reads the histories in parts alone."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

from sharelens.tables.port import DELIVERIES, HISTORY, RECORDS, Tables
from sharelens.tables.where import ALL_ROWS, Order, Where

Scan = Callable[..., Iterator[pa.Table]]


def refuse_whole_scans(monkeypatch: pytest.MonkeyPatch, tables: type[Any]) -> None:
    """Scans of histories and records need places from now on."""
    scan_all: Scan = tables.scan

    def scan(
        self: Tables,
        table: str,
        columns: Sequence[str] | None = None,
        where: Where = ALL_ROWS,
        order: Order = Order.ANY,
    ) -> Iterator[pa.Table]:
        assert where.places is not None or table not in (HISTORY, DELIVERIES, RECORDS)
        return scan_all(self, table, columns, where, order)

    monkeypatch.setattr(tables, "scan", scan)
