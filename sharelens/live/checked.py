"""What a comparison with the coordinators of a running cluster says."""

from typing import NamedTuple


class Checked(NamedTuple):
    """`line`: for the summary; `warnings`: values that differ although the log did not change meanwhile."""

    line: str = ""
    warnings: tuple[str, ...] = ()


UNCHECKED = Checked()
"""The evidence has no coordinator to ask."""
