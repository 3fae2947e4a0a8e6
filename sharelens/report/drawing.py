"""Pictures of answers as SVG."""

from sharelens.report.lag_lines import LagPicture
from sharelens.report.model import Figure
from sharelens.report.pictures import CountsPicture, Picture


def figure(name: str, picture: Picture) -> Figure | None:
    """The picture as SVG; `name` keeps its ids apart from those of other pictures. None: it would be empty."""
    from sharelens.report import bands, figures  # they load the library of charts, which a server does without

    if isinstance(picture, LagPicture):
        return figures.lag_chart(name, picture)
    if isinstance(picture, CountsPicture):
        return figures.delivery_counts(name, picture)
    return bands.band(name, picture) if picture.timeline.marks else None
