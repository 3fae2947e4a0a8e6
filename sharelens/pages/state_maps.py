"""The state map of a share partition, which the page's script draws from the rows of `sharelens moments`."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sharelens.pages.address import Address, Options, options_of, path
from sharelens.report import raster
from sharelens.report.colours import CELLS
from state_model.share_records import DeliveryState

QUESTION = "moments"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateMap:
    """What the script needs: the question for the rows, and the page of the share partition, with its records below.

    `codes`: JSON, by delivery state the code of its cells for a delivery count of 0, 1 and so on, the last one for all
    above; `unknown`: the code of other states. `legend`: (code, words).
    """

    address: Address
    place: str
    codes: str
    unknown: int
    legend: Sequence[tuple[int, str]]


def state_map(group: str, topic: str, partition: str, options: Options) -> StateMap:
    """The map of a share partition; `options` bound its moments and record offsets."""
    named = (("group", group), ("topic", topic), ("partition", partition), *options)
    codes = {
        int(state): [raster.code_of(state, count) for count in range(raster.MOST_ATTEMPTS + 1)]
        for state in DeliveryState
    }
    return StateMap(
        address=Address(QUESTION, options_of(QUESTION, named)),
        place=path("groups", group, topic, partition),
        codes=json.dumps(codes),
        unknown=raster.UNKNOWN,
        legend=[(code, raster.words(code)) for code in CELLS],
    )
