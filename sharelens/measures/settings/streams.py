"""The numbers that settings of streams groups had between two times, for the audit."""

from functools import cache

from sharelens.measures.settings.over_time import GroupSettings
from state_model.audit.model_groups.bounds import Bounds, BoundsOf


def bounds_of(settings: GroupSettings) -> BoundsOf:
    """By group the least and the largest number of a setting in force between two times."""
    periods = settings.periods()
    ends = [*(period.from_ms for period in periods[1:]), None]

    @cache
    def of_group(group_id: str) -> Bounds:
        @cache
        def number(place: int, name: str) -> int | None:
            return periods[place].of(group_id, name, periods[place].from_ms).number

        def bounds(name: str, from_ms: int, to_ms: int) -> tuple[int, int] | None:
            numbers = [
                number(place, name)
                for place, (period, end) in enumerate(zip(periods, ends, strict=True))
                if (place == 0 or period.from_ms <= to_ms) and (end is None or from_ms < end)
            ]
            known_numbers = [setting_value for setting_value in numbers if setting_value is not None]
            return (
                (min(known_numbers), max(known_numbers))
                if known_numbers and len(known_numbers) == len(numbers)
                else None
            )

        return bounds

    return of_group
