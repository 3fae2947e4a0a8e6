"""The option type of --retain."""

import click

from sharelens.cli.options.common import Duration


class Ages(click.ParamType[dict[str, int]]):
    """Ages by group of tables, as `bronze=90d,history=400d`."""

    name = "ages"

    def convert(
        self, value: str | dict[str, int], param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, int]:
        """Milliseconds by group; a usage error for an unknown group, one given twice, or no length of time."""
        from jobs.retained import GROUPS

        if isinstance(value, dict):
            return value
        ages: dict[str, int] = {}
        for part in value.split(",") if value.strip() else ():
            group, equals, age = (text.strip() for text in part.partition("="))
            if group not in GROUPS or not equals:
                self.fail(
                    f"{part.strip()!r} is no age of {', '.join(GROUPS)}; type bronze=90d,history=400d", param, ctx
                )
            if group in ages:
                self.fail(f"{group} is given twice", param, ctx)
            ages[group] = Duration().convert(age, param, ctx)
        return ages
