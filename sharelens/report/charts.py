"""The charts, drawn as SVG when the page is written: it needs no script to show them, and nothing from elsewhere."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import vl_convert
from altair.utils.schemapi import debug_mode

from sharelens.parameters.times import DAY_MS, MINUTE_MS, SECOND_MS, time_step
from sharelens.report import colours
from sharelens.report.model import Drawn
from sharelens.report.raster import Picture

WIDE, NARROW = 900, 330
COUNT_TICKS = 5
BAND_LABELS, BAND_LABELS_NARROW = 124, 112
"""Pixels for the names of lanes, in whatever font the reader has."""
END_OF_LABEL = "length(datum.label) > 15 ? '…' + slice(datum.label, -14) : datum.label"
"""The end of a long name in a Vega expression: it has the number of the partition."""
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif"
ID, NAMED = re.compile(r'\bid="([^"]*)"'), re.compile(r'(\bid="|url\(#|href="#)([^")]*)')
Rows = Sequence[Mapping[str, object]]
Chart = alt.LayerChart | alt.FacetChart


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Pixels of a drawing; a narrow one is for phones: fewer labels, and no words on its marks."""

    width: int
    height: int

    @property
    def narrow(self) -> bool:
        """For phones."""
        return self.width < WIDE


def drawn(name: str, height: int, chart: Callable[[Size], Chart], data: Mapping[str, Rows]) -> Drawn:
    """The chart as SVG. `data`: rows by the names that the chart uses; `name` keeps ids on the page apart."""
    sizes = (Size(width=WIDE, height=height), Size(width=NARROW, height=min(height, 260)))
    with debug_mode(False):  # checking each part against the schema takes half of the time; the tests check them
        wide, narrow = (_svg(f"{name}-{size.width}", size, chart(size), data) for size in sizes)
    return Drawn(wide=wide, narrow=narrow)


def _svg(name: str, size: Size, chart: Chart, data: Mapping[str, Rows]) -> str:
    """One drawing; no address may be loaded for it."""
    spec: dict[str, Any] = _sized_chart(chart, size).to_dict(validate=False)
    spec["datasets"] = {key: list(rows) for key, rows in data.items()}
    svg: str = vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])
    return _with_own_ids(svg, name)


def _sized_chart(chart: Chart, size: Size) -> Chart:
    sized: Chart = chart.properties(
        width=size.width, height=size.height, autosize=alt.AutoSizeParams(type="fit", contains="padding"),
        background="transparent", padding={"left": 2, "right": 10, "top": 8, "bottom": 2},
    )  # fmt: skip
    configured: Chart = sized.configure(**_config(size))
    return configured


def _with_own_ids(svg: str, name: str) -> str:
    """Ids that no other drawing of the page has, and that are the same whenever the same is drawn."""
    ids = {identity: f"{name}-{place}" for place, identity in enumerate(dict.fromkeys(ID.findall(svg)))}
    return NAMED.sub(lambda match: match[1] + ids.get(match[2], match[2]), svg)


def _config(size: Size) -> dict[str, Any]:
    text, title, grid = (pair[0] for pair in (colours.TEXT, colours.TITLE, colours.GRID))
    axis = {
        "labelColor": text, "titleColor": title, "gridColor": grid, "domainColor": grid, "tickColor": grid,
        "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": 500, "titlePadding": 10, "labelPadding": 6,
        "labelFlush": True, "labelOverlap": "greedy",
    }  # fmt: skip
    return {"font": FONT, "axis": axis, "view": {"stroke": None}, "aria": not size.narrow}


def _time_axis(size: Size, from_ms: int, to_ms: int) -> alt.Axis:
    """An axis with so few ticks that their labels stay apart: 4 on phones, else 9 at most."""
    step, span = time_step(to_ms - from_ms, 4 if size.narrow else 9), to_ms - from_ms
    clock = "%H:%M" if step >= MINUTE_MS else "%H:%M:%S" if step >= SECOND_MS else "%H:%M:%S.%L"
    form = "%b %d" if step >= DAY_MS else f"%b %d {clock}" if span >= 2 * DAY_MS else clock
    ticks = list(range(-(-from_ms // step) * step, to_ms + 1, step))
    return alt.Axis(title="log time (UTC)", grid=False, values=ticks, format=form)


def _offset_axis(size: Size) -> alt.Axis:
    return alt.Axis(title="record offset", format=",d", tickMinStep=1, tickCount=5 if size.narrow else 7)


def _count_axis(title: str, highest: int) -> alt.Axis:
    """An axis of whole numbers up to `highest`; few of them are ticks themselves, as steps of ticks may be halves."""
    few = list(range(highest + 1)) if highest < COUNT_TICKS else alt.Undefined
    return alt.Axis(title=title, format=",d", tickCount=COUNT_TICKS, tickMinStep=1, values=few)


def state_map(picture: Picture, pin: int | None) -> Callable[[Size], Chart]:
    """A chart over the data sets `cells` (x, x2, y, y2, code, text), `lines` (x, start, end), `pins` (x, y, text)."""
    window = picture.window
    codes = sorted(colours.CELLS)

    def chart(size: Size) -> Chart:
        times = alt.Scale(type="utc", domain=[window.from_ms, window.to_ms], nice=False)
        offsets = alt.Scale(domain=[window.low, window.high], nice=False, zero=False)
        x = alt.X("x:T", scale=times, axis=_time_axis(size, window.from_ms, window.to_ms))
        y = alt.Y("y:Q", scale=offsets, axis=_offset_axis(size))
        lines = alt.Chart(alt.NamedData(name="lines")).encode(x=x)
        passed = lines.mark_area(interpolate="step-before", color=colours.PASSED[0], clip=True, aria=False).encode(
            y=alt.Y("start:Q", scale=offsets, axis=_offset_axis(size)), y2=alt.Y2("low:Q")
        )
        cells = alt.Chart(alt.NamedData(name="cells")).mark_rect(clip=True, strokeWidth=0, aria=not size.narrow)
        painted = cells.encode(
            x=x, x2=alt.X2("x2:T"), y=y, y2=alt.Y2("y2:Q"),
            color=alt.Color(
                "code:O", legend=None, scale=alt.Scale(domain=codes, range=[colours.CELLS[code][0] for code in codes])
            ),
            **({} if size.narrow else {"description": alt.Description("text:N")}),
        )  # fmt: skip
        end = lines.mark_line(
            interpolate="step-before", color=colours.END[0], strokeDash=[4, 4], strokeWidth=1.5, clip=True, aria=False
        ).encode(y=alt.Y("end:Q", scale=offsets))
        start = lines.mark_line(
            interpolate="step-before", color=colours.START[0], strokeWidth=2, clip=True, aria=False
        ).encode(y=alt.Y("start:Q", scale=offsets))
        layers: list[alt.Chart] = [passed, start, painted, end]
        if pin is not None:
            label = alt.Chart(alt.NamedData(name="pins")).encode(x=x, y=y, text=alt.Text("text:N"))
            halo = {"stroke": colours.CARD[0], "strokeWidth": 4, "strokeJoin": "round"}
            layers += [
                label.mark_text(
                    align="right", baseline="bottom", dx=-6, dy=-5, fontSize=13, fontWeight=600, aria=False, **look
                )
                for look in (halo, {"color": colours.TITLE[0]})
            ]
        return alt.layer(*layers)

    return chart


def lag_lines(names: Sequence[str], from_ms: int, to_ms: int, highest: int) -> Callable[[Size], Chart]:
    """A chart over the data sets `lags` and `parts` (x, lag, name, stretch): one line for each of at most eight names.

    `parts`: stretches in which a part of the lag is unknown; they are thin. `highest`: the largest lag.
    """
    count = len(names)
    colour = alt.Scale(domain=list(names), range=[pair[0] for pair in colours.LINES[:count]])
    dash = alt.Scale(domain=list(names), range=[list(dash) for dash in colours.DASHES[:count]])

    def chart(size: Size) -> Chart:
        times = alt.Scale(type="utc", domain=[from_ms, to_ms], nice=False)

        def lines(data: str, width: float) -> alt.Chart:
            rows = alt.Chart(alt.NamedData(name=data)).encode(
                x=alt.X("x:T", scale=times, axis=_time_axis(size, from_ms, to_ms)),
                y=alt.Y("lag:Q", axis=_count_axis("lag (records)", highest)),
                color=alt.Color("name:N", legend=None, scale=colour),
                strokeDash=alt.StrokeDash("name:N", legend=None, scale=dash),
                detail="stretch:N",
            )
            line: alt.Chart = rows.mark_line(interpolate="step-after", strokeWidth=width, aria=False)
            return line

        whole_lines, part = lines("lags", 2), lines("parts", 0.8)
        return alt.layer(whole_lines, part)

    return chart


def delivery_counts(kinds: Sequence[tuple[str, int]], labels: Sequence[str], highest: int) -> Callable[[Size], Chart]:
    """A chart over the data set `counts` (label, kind, records, from, until, text) and `totals` (label, records, text).

    `kinds`: words and cell code of each outcome; `labels`: the delivery counts in their order;
    `highest`: the largest total.
    """

    def chart(size: Size) -> Chart:
        y = alt.Y(
            "label:N", sort=list(labels), axis=alt.Axis(title="delivery count", grid=False, ticks=False, domain=False)
        )
        scale = alt.Scale(domain=[kind for kind, _ in kinds], range=[colours.CELLS[code][0] for _, code in kinds])
        bars = (
            alt.Chart(alt.NamedData(name="counts"))
            .mark_bar(height={"band": 0.62}, aria=not size.narrow)
            .encode(
                y=y,
                x=alt.X("from:Q", axis=_count_axis("records", highest)),
                x2=alt.X2("until:Q"),
                color=alt.Color("kind:N", legend=None, scale=scale),
                **({} if size.narrow else {"description": alt.Description("text:N")}),
            )
        )
        totals = (
            alt.Chart(alt.NamedData(name="totals"))
            .mark_text(align="left", dx=6, color=colours.TEXT[0], fontSize=12, aria=False)
            .encode(y=y, x=alt.X("records:Q"), text=alt.Text("text:N"))
        )
        return alt.layer(bars, totals)

    return chart


def band(
    lanes: Sequence[tuple[str, str, str]], from_ms: int, to_ms: int, *, has_stalls: bool
) -> Callable[[Size], Chart]:
    """A chart over the data sets `marks` (x, lane, size, text) and `stalls` (x, x2, lane, text).

    `lanes`: name, shape and colour of each, from the top.
    """
    names, shapes, fills = ([lane[part] for lane in lanes] for part in range(3))

    def chart(size: Size) -> Chart:
        x = alt.X(
            "x:T",
            scale=alt.Scale(type="utc", domain=[from_ms, to_ms], nice=False),
            axis=_time_axis(size, from_ms, to_ms),
        )
        described = {} if size.narrow else {"description": alt.Description("text:N")}
        room = BAND_LABELS_NARROW if size.narrow else BAND_LABELS
        axis = alt.Axis(title=None, grid=True, ticks=False, domain=False, labelLimit=room, minExtent=room)
        lane = alt.Y("lane:N", sort=names, scale=alt.Scale(domain=names), axis=axis)
        marks = (
            alt.Chart(alt.NamedData(name="marks"))
            .mark_point(filled=True, opacity=1, strokeWidth=1.5, aria=not size.narrow)
            .encode(
                x=x,
                y=lane,
                shape=alt.Shape("lane:N", legend=None, scale=alt.Scale(domain=names, range=shapes)),
                color=alt.Color("lane:N", legend=None, scale=alt.Scale(domain=names, range=fills)),
                size=alt.Size("size:Q", legend=None, scale=None),
                **described,
            )
        )
        if not has_stalls:
            return alt.layer(marks)
        stalls = (
            alt.Chart(alt.NamedData(name="stalls"))
            .mark_bar(height={"band": 0.45}, aria=not size.narrow)
            .encode(
                x=x,
                x2=alt.X2("x2:T"),
                y=lane,
                color=alt.Color("lane:N", legend=None, scale=alt.Scale(domain=names, range=fills)),
                **described,
            )
        )
        return alt.layer(stalls, marks)

    return chart


def ownership(lanes: Sequence[str], colour_of: Mapping[str, str], from_ms: int, to_ms: int) -> Callable[[Size], Chart]:
    """A chart over the data set `owners` (x, x2, lane, member, text): in each lane a bar for each owner.

    `lanes`: from the top. `colour_of`: the colour of each member.
    """

    def chart(size: Size) -> Chart:
        x = alt.X(
            "x:T",
            scale=alt.Scale(type="utc", domain=[from_ms, to_ms], nice=False),
            axis=_time_axis(size, from_ms, to_ms),
        )
        axis = alt.Axis(
            title=None, grid=True, ticks=False, domain=False, labelLimit=BAND_LABELS_NARROW, labelOverlap=size.narrow,
            labelFlush=False, labelExpr=END_OF_LABEL,
        )  # fmt: skip
        bars = (
            alt.Chart(alt.NamedData(name="owners"))
            .mark_bar(height={"band": 0.75}, clip=True, aria=not size.narrow)
            .encode(
                x=x,
                x2=alt.X2("x2:T"),
                y=alt.Y("lane:N", sort=list(lanes), scale=alt.Scale(domain=list(lanes)), axis=axis),
                color=alt.Color(
                    "member:N",
                    legend=None,
                    scale=alt.Scale(domain=list(colour_of), range=list(colour_of.values())),
                ),
                **({} if size.narrow else {"description": alt.Description("text:N")}),
            )
        )
        return alt.layer(bars)

    return chart
