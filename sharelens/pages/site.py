"""Answers requests: an address becomes questions, their answers a page or a document."""

import asyncio
import re
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict
from urllib.parse import urlencode

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from sharelens.cli.failures import failure
from sharelens.output import say
from sharelens.output.wording import name
from sharelens.pages import composed
from sharelens.pages.address import Address, Options, Session, names_of, options_of
from sharelens.pages.answers import PageAnswer, PageError, document, page_answer, rows
from sharelens.pages.composed import MENU, Plan, Section
from sharelens.pages.forms import fields
from sharelens.pages.html import Shown, View, render, saved, static
from sharelens.pages.searching import Search
from sharelens.pages.state_maps import StateMap, state_map
from sharelens.pages.tables import table_answer, table_parts
from sharelens.pages.workers import Workers
from sharelens.parameters.times import time_text
from sharelens.question_table.table import QUESTIONS
from sharelens.report.drawing import figure
from sharelens.report.model import Figure
from state_model.audit.explanation import explained
from state_model.errors import UsageError

FORMS = {"json": "application/json", "csv": "text/csv", "txt": "text/plain"}
"""Endings of documents and their media types."""
DOCUMENTS = (("Text", "txt"), ("JSON", "json"), ("CSV", "csv"))
QUESTION_NAMES = frozenset(question.name for questions in QUESTIONS.values() for question in questions)
MOST_QUERY = 16 << 10
"""Bytes of a query."""
STATIC = "/static/"
SAVE = "save"
"""The option of an address that asks for the page as one file."""
REFRESH_S = 15


class Answered(TypedDict, total=False):
    """The answer of a part of a page, or the line that says why there is none."""

    answer: PageAnswer
    failure: str
    is_usage: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Pages over one source; `source` names it. `workers` ask its questions, `drawers` draw their pictures."""

    workers: Workers
    drawers: Workers
    session: Session
    source: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The application, for a server of ASGI; no router, whose patterns don't know names with line breaks."""
        response = await self._respond(Request(scope))
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        if len(request.scope["query_string"]) > MOST_QUERY:
            return self._message("Too long", f"an address has at most {MOST_QUERY:,} bytes of options", 414)
        raw_path = request.scope["raw_path"].decode("ascii", "replace")
        if raw_path.startswith(STATIC):
            return _static(raw_path.removeprefix(STATIC))
        options = tuple((key, text) for key, text in request.query_params.multi_items() if text)
        is_saved = (SAVE, "on") in options
        options = tuple(option for option in options if option[0] != SAVE)
        try:
            page = await self._page(names_of(raw_path), options)
            if isinstance(page, Response):
                return page
            return await self._sent(page, f"{raw_path}?{urlencode([*options, (SAVE, 'on')])}", is_saved=is_saved)
        except PageError as error:
            return self._message("No answer", error.line, 400 if error.is_usage else 503)
        except UsageError as error:
            return self._message("Not a page", str(error), 400)
        except Exception as error:
            say(f"sharelens: explore: {raw_path}: {failure(error).line}")
            return self._message("Failed", failure(error).line, 500)

    async def _page(self, names: tuple[str, ...], options: Options) -> View | Response:
        match names:
            case ("ask", *rest):
                return await self._question(rest, options)
            case ("search",):
                return await self._search(dict(options).get("q", ""))
            case ("groups", group):
                return replace(await self._together(await self._group_plan(group, options)), refresh_s=self._refresh_s)
            case ("groups", group, topic, partition):
                plan = composed.share_partition_page(group, topic, partition, options)
                return await self._together(plan, state_map(group, topic, partition, options))
            case ("groups", group, topic, partition, offset):
                return await self._together(composed.record_page(group, topic, partition, offset, options))
            case ("audit", rule):
                way = (("Audit", "/audit"),)
                return View(title=name(rule), way=way, text=explained(rule))
            case ("tables",) | ("tables", _):
                return await self._tables(*names[1:])
            case ("before", group, moment):
                return await self._together(composed.before_page(group, moment))
            case () | (_,) if (page := "/" + "".join(names)) in MENU:
                title, question = MENU[page]
                view = await self._alone(Address(question, options), page, title)
                return replace(view, refresh_s=self._refresh_s if page in composed.REFRESHED else 0)
        return self._message("No such page", "the menu has all pages", 404)

    async def _question(self, names: Sequence[str], options: Options) -> View | Response:
        """All questions, one of them as a form with its answer, or its answer as a document."""
        match names:
            case []:
                return View(title="All questions", place="/ask", questions=composed.all_questions())
            case [question] if question in QUESTION_NAMES:
                return await self._alone(Address(question, options), f"/ask/{question}", "")
            case [file] if file.partition(".")[0] in QUESTION_NAMES and file.partition(".")[2] in FORMS:
                question, _, ending = file.partition(".")
                return await self._document(Address(question, options), ending)
        return self._message("No such page", "the menu has all pages", 404)

    @property
    def _refresh_s(self) -> int:
        """After how long a page of what is wrong now reads itself again; 0: the source does not grow."""
        return REFRESH_S if self.session.grows else 0

    async def _alone(self, address: Address, place: str, title: str) -> View:
        address.words(self.session)  # a parameter that the question lacks is an error of the address
        plan = composed.question_page(address, title)
        form = fields(address)
        keys = {key for key, _ in address.options}
        is_complete = all(field.key in keys for field in form if field.is_required)
        shown = [await self._shown(section) for section in plan.sections] if is_complete else []
        return View(
            title=plan.title,
            place=place,
            sections=shown,
            way=plan.way,
            fields=form,
            message="" if shown else "Fill in what the question needs.",
        )

    async def _search(self, text: str) -> Response | View:
        results = await Search(self.workers, self.session).results(text)
        if len(results) == 1:
            return RedirectResponse(results[0][1], 303)
        if not results:
            return self._message("Nothing found", f"nothing is named {text!r} in this evidence", 404)
        return View(title=f"{len(results)} results", place="/search", results=results)

    async def _group_plan(self, group: str, options: Options) -> Plan:
        address = Address("groups", options_of("groups", (("group", group), *options)))
        try:
            parts = await self.workers.ask(rows, address.question, address.words(self.session))
        except PageError:
            return composed.group_page(group, options, "")
        row = next(iter(parts[""]), {})
        return composed.group_page(group, options, str(row.get("group_type", "")))

    async def _together(self, plan: Plan, drawn: StateMap | None = None) -> View:
        shown = await asyncio.gather(*map(self._shown, plan.sections))
        return View(title=plan.title, sections=shown, way=plan.way, further=plan.further, state_map=drawn)

    async def _tables(self, table: str = "") -> View | Response:
        """The tables of a lake, or one of them."""
        if "--lake" not in self.session.texts:
            return self._message("Tables", "tables are those of a lake; `sharelens run --lake DIR` writes one", 404)
        parts, words = table_parts(self.session, table), self.session.words_for("status")
        asking = (self._answered(table_answer, words, part) for part in parts)
        answers = zip(parts, await asyncio.gather(*asking), strict=True)
        shown = [Shown(title=part.title, command_line=part.command_line, **answer) for part, answer in answers]
        way = (("Tables", "/tables"),) if table else ()
        return View(title=name(table) if table else "Tables", place="/tables", sections=shown, way=way)

    async def _shown(self, section: Section) -> Shown:
        address = section.address
        note = f"Not bounded by {' and '.join(section.unbounded)} of this page." if section.unbounded else ""
        answered = await self._answered(
            page_answer, address.question, address.words(self.session), section.without, section.title
        )
        return Shown(
            figure=await self._figure(address.question, answered.get("answer")),
            title=section.title,
            command_line=address.command_line(self.session),
            page=address.url,
            documents=[(words, address.document(ending)) for words, ending in DOCUMENTS],
            note=note,
            **answered,
        )

    async def _figure(self, question: str, answer: PageAnswer | None) -> Figure | None:
        """The picture of an answer; None: it has none."""
        if answer is None or answer.picture is None:
            return None
        return await self.drawers.ask(figure, f"{question}-chart", answer.picture)

    async def _answered(self, function: Callable[..., PageAnswer], *arguments: object) -> Answered:
        """What a function answers in a worker, or the line that says why there is no answer."""
        try:
            return {"answer": await self.workers.ask(function, *arguments)}
        except PageError as error:
            return {"failure": error.line, "is_usage": error.is_usage}

    async def _document(self, address: Address, ending: str) -> Response:
        folder = tempfile.TemporaryDirectory(prefix="sharelens-explore-")
        try:
            place = await self._written(address, ending, Path(folder.name))
        except BaseException:
            folder.cleanup()
            raise
        name = None if ending == "txt" else f"{address.question}.{ending}"
        return FileResponse(place, media_type=FORMS[ending], filename=name, background=BackgroundTask(folder.cleanup))

    async def _written(self, address: Address, ending: str, folder: Path) -> Path:
        place = folder / "document"
        form = "text" if ending == "txt" else ending
        await self.workers.ask(document, address.question, address.words(self.session), form, place)
        return place

    async def _sent(self, view: View, save: str, *, is_saved: bool) -> Response:
        """The page, or the file that it is saved as; `save`: the address of that."""
        view = replace(view, source=self.source, read_at=time_text(time.time_ns() // 1_000_000), save=save)
        status = _status(view.sections)
        if not is_saved or status != 200:
            return _html(view, status)
        map_rows = ""
        if view.state_map is not None:
            with tempfile.TemporaryDirectory(prefix="sharelens-explore-") as folder:
                place = await self._written(view.state_map.address, "json", Path(folder))
                map_rows = place.read_text(encoding="utf-8")
        name = re.sub(r"[^A-Za-z0-9.]+", "-", view.title).strip("-").lower()[:80] or "page"
        headers = {"Content-Disposition": f'attachment; filename="{name}.html"'}
        return HTMLResponse(render(saved(view, map_rows)), headers=headers)

    def _message(self, title: str, message: str, status: int) -> Response:
        return _html(View(title=title, source=self.source, message=message), status)


def _static(name: str) -> Response:
    try:
        media_type, text = static(name)
    except KeyError:
        return Response(status_code=404)
    return Response(text, media_type=media_type, headers={"Cache-Control": "private, max-age=86400"})


def _status(sections: Sequence[Shown]) -> int:
    """Where no part of a page has an answer 404, or 503 where only the source is to blame."""
    if not sections or any(section.answer for section in sections):
        return 200
    return 404 if any(section.is_usage for section in sections) else 503


def _html(view: View, status: int = 200) -> Response:
    return HTMLResponse(render(view), status)
