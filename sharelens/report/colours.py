"""The colours of charts: one pair (light, dark) for each role, safe for the colour-blind: blue is done, orange is not.

Charts are drawn with the light colour of a pair; the page exchanges it for the dark one by a style rule.
"""

from collections.abc import Mapping, Sequence

from sharelens.report.raster import ACKNOWLEDGED, ARCHIVED, ARCHIVING, OPEN, UNKNOWN

TEXT, TITLE, GRID = ("#5b6570", "#a3adb8"), ("#2f353c", "#d5dbe2"), ("#e3e7ec", "#2c333b")
PASSED, CARD = ("#f0f2f5", "#20262d"), ("#ffffff", "#171c22")
START, END = ("#1d4fc4", "#86a8ff"), ("#737d88", "#949eaa")
CELLS: Mapping[int, tuple[str, str]] = {
    ACKNOWLEDGED: ("#a9cbe6", "#2c587e"),
    ARCHIVED: ("#54449b", "#b6a6f5"),
    ARCHIVING: ("#a994dc", "#7966bd"),
    OPEN: ("#fbd28c", "#8d6420"),
    OPEN + 1: ("#f4a13d", "#c98420"),
    OPEN + 2: ("#df641b", "#f5853a"),
    OPEN + 3: ("#b02f10", "#ff6242"),
    UNKNOWN: ("#4a4f55", "#c4cad1"),
}
LINES: Sequence[tuple[str, str]] = (
    ("#1f5fbe", "#74abff"),
    ("#c5530d", "#ff9f5f"),
    ("#0f7f67", "#50d2b1"),
    ("#8b40a9", "#d29cf1"),
    ("#9c7300", "#e8c14b"),
    ("#b7336f", "#ff90bc"),
    ("#3c7e9e", "#87cfef"),
    ("#58626d", "#afb9c3"),
)
DASHES: Sequence[tuple[int, ...]] = ((1, 0), (7, 3), (2, 2), (9, 3, 2, 3), (4, 4), (12, 4), (2, 5), (6, 2, 2, 2))
"""A second sign beside the colour of each line."""


def pairs() -> Sequence[tuple[str, str]]:
    """Every pair there is."""
    return (TEXT, TITLE, GRID, PASSED, CARD, START, END, *CELLS.values(), *LINES)


def style_rules() -> str:
    """Rules that give the charts' colours their dark counterparts, and the legends theirs."""
    rules = [
        f'svg [{attribute}="{light}"]{{{attribute}:light-dark({light},{dark})}}'
        for light, dark in pairs()
        for attribute in ("fill", "stroke")
    ]
    rules += [
        f".key-cell-{code}{{background:{light};background:light-dark({light},{dark})}}"
        for code, (light, dark) in CELLS.items()
    ]
    return "\n".join(rules)
