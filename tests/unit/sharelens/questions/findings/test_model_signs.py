"""What signs of streams and consumer groups have in common."""

import pyarrow as pa
import pytest

from sharelens.questions.findings.model_signs import rows_by_group


@pytest.mark.parametrize("names", [[], ["a"], ["b", "b", "a", "c", "c"]])
def test_slices_of_rows_by_group_are_all_rows(names: list[str]) -> None:
    rows = pa.table({"group_id": pa.array(names, pa.string()), "at": range(len(names))})
    slices = rows_by_group(rows)
    assert list(slices) == list(dict.fromkeys(names))
    assert [at for part in slices.values() for at in part.column("at").to_pylist()] == list(range(len(names)))
    assert all(set(part.column("group_id").to_pylist()) == {name} for name, part in slices.items())
