"""Start-up without pandas: Arrow imports an installed pandas at once, which takes longer than most answers."""

from state_model.columnar.hidden_modules import hidden


def import_arrow_without_pandas() -> None:
    """Imports Arrow while pandas is hidden; a later `import pandas` works."""
    with hidden("pandas"):
        import pyarrow as pa

        pa.scalar(0)
