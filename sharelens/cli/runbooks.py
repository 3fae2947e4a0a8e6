"""The command `runbook`: the pages that alerts and gates name."""

import re
from pathlib import Path

import click

from sharelens.cli.options.common import examples
from sharelens.output import tell
from state_model.errors import UsageError

PACKAGE = Path(__file__).parents[1]
PREFIX = "docs/runbooks/"


@click.command(
    short_help="The runbook of an alert or a closed gate.",
    epilog=examples(
        "sharelens runbook",
        "sharelens runbook ShareGroupStuck",
        "sharelens runbook docs/runbooks/gates/keys.md#goldlag",
    ),
)
@click.argument("name", required=False)
def runbook(name: str | None) -> None:
    """Prints a runbook: NAME is an alert, a page, or the place that an answer shows; without NAME their list."""
    pages = _pages()
    if name is None:
        tell("\n".join(pages))
        return
    place, _, anchor = name.removeprefix(PREFIX).partition("#")
    page = place.removesuffix(".md").rstrip("/")
    chosen = pages.get(page) or pages.get(_page_of_alert(page)) or pages.get(f"gates/{page}")
    if chosen is None:
        raise UsageError(f"runbook: no page {name!r}; pages: {', '.join(pages)}")
    text = chosen.read_text(encoding="utf-8").rstrip("\n")
    tell(text if not anchor else _section(text, anchor))


def _pages() -> dict[str, Path]:
    """Every page by its name below the folder: of the wheel, or of a checkout."""
    folder = next(place for place in (PACKAGE / "runbooks", PACKAGE.parent / PREFIX) if place.is_dir())
    return {str(path.relative_to(folder).with_suffix("")): path for path in sorted(folder.rglob("*.md"))}


def _page_of_alert(alert: str) -> str:
    """share-group-stuck for ShareGroupStuck."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", alert).lower()


def _section(text: str, anchor: str) -> str:
    """The part before the first section, and the section of the anchor; the whole text without such a section."""
    introduction, *sections = re.split(r"(?m)^(?=## )", text)
    named = [section for section in sections if re.sub(r"[^a-z0-9_]", "", section.splitlines()[0].lower()) == anchor]
    return f"{introduction}{named[0]}".rstrip("\n") if named else text


COMMANDS = (runbook,)
