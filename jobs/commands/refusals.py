"""Closed gates: what a command says of them, and its exit code."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from sharelens.output import say

if TYPE_CHECKING:
    from sharelens.lake.gates import Gate

FINDINGS = 3


def say_closed(gates: "Sequence[Gate]") -> None:
    """Prints the closed gates that prevent publication."""
    from sharelens.lake.gates import closed_text

    say(f"sharelens: not published, questions still read the last cut; closed gates: {closed_text(gates)}")
    say("causes and remedies: `sharelens runbook`; then run `sharelens check` and `sharelens publish`")


def refuse_closed(gates: "Sequence[Gate]") -> None:
    """Prints the closed gates that prevent publication, and exits with 3."""
    say_closed(gates)
    raise click.exceptions.Exit(FINDINGS)
