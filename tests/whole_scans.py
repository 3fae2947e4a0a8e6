"""Refuses scans of whole tables, so that a test shows that a question reads the histories in parts alone."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

from sharelens.tables.port import DELIVERIES, HISTORY, RECORDS, Tables
from sharelens.tables.where import ALL_ROWS, Order, Where

Scan = Callable[..., Iterator[pa.Table]]


def refuse_whole_scans(monkeypatch: pytest.MonkeyPatch, tables: type[Any]) -> None:
    """Scans of histories, and of records in their order, need places from now on."""
    scan_all: Scan = tables.scan

    def scan(
        self: Tables,
        table: str,
        columns: Sequence[str] | None = None,
        where: Where = ALL_ROWS,
        order: Order = Order.ANY,
    ) -> Iterator[pa.Table]:
        is_bounded = table not in (HISTORY, DELIVERIES, RECORDS) or (table == RECORDS and order == Order.ANY)
        assert is_bounded or where.places is not None
        return scan_all(self, table, columns, where, order)

    monkeypatch.setattr(tables, "scan", scan)
