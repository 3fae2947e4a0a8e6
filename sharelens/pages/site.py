"""Answers requests: an address becomes questions, their answers a page or a document."""

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from sharelens.pages import composed
from sharelens.pages.address import Address, Options, Session, names_of, options_of
from sharelens.pages.answers import PageAnswer, PageError, document, page_answer
from sharelens.pages.composed import ALONE, Plan, Section
from sharelens.pages.forms import fields
from sharelens.pages.html import Shown, View, render, static
from sharelens.pages.searching import Search
from sharelens.pages.workers import Workers
from sharelens.question_table.table import QUESTIONS
from state_model.errors import UsageError

FORMS = {"json": "application/json", "csv": "text/csv", "txt": "text/plain"}
"""Endings of documents and their media types."""
QUESTION_NAMES = frozenset(question.name for questions in QUESTIONS.values() for question in questions)
MOST_QUERY = 16 << 10
"""Bytes of a query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Pages over one source; `source` names it."""

    workers: Workers
    session: Session
    source: str

    def application(self) -> Starlette:
        """The application, for a server of ASGI."""
        return Starlette(routes=[Route("/static/{name}", _static), Route("/{rest:path}", self._respond)])

    async def _respond(self, request: Request) -> Response:
        if len(request.scope["query_string"]) > MOST_QUERY:
            return self._message("Too long", f"an address has at most {MOST_QUERY:,} bytes of options", 414)
        names = names_of(request.scope["raw_path"].decode("ascii", "replace"))
        options = tuple((key, text) for key, text in request.query_params.multi_items() if text)
        try:
            return await self._page(names, options, request.url.path)
        except PageError as error:
            return self._message("No answer", error.line, 400 if error.is_usage else 503)
        except UsageError as error:
            return self._message("Not a page", str(error), 400)

    async def _page(self, names: tuple[str, ...], options: Options, place: str) -> Response:
        match names:
            case ("ask",):
                return _html(
                    View(title="All questions", source=self.source, place="/ask", questions=composed.all_questions())
                )
            case ("search",):
                return await self._search(dict(options).get("q", ""))
            case ("ask", question) if question in QUESTION_NAMES:
                return await self._alone(Address(question, options), f"/ask/{question}", "")
            case ("ask", file) if file.partition(".")[0] in QUESTION_NAMES and file.partition(".")[2] in FORMS:
                question, _, ending = file.partition(".")
                return await self._document(Address(question, options), ending)
            case ("groups", group):
                return await self._together(await self._group_plan(group, options), options)
            case ("groups", group, topic, partition):
                return await self._together(composed.share_partition_page(group, topic, partition, options), options)
            case ("groups", group, topic, partition, offset):
                return await self._together(composed.record_page(group, topic, partition, offset, options), options)
            case () | (_,) if (page := "/" + "".join(names)) in ALONE:
                return await self._alone(Address(ALONE[page], options), page, composed.MENU[page])
        return self._message("No such page", f"there is no page {place}; the menu has all", 404)

    async def _alone(self, address: Address, place: str, title: str) -> Response:
        address.words(self.session)  # a parameter that the question lacks is an error of the address
        plan = composed.question_page(address, title)
        shown = [] if _lacks_values(address) else [await self._shown(section) for section in plan.sections]
        view = View(
            title=plan.title, source=self.source, place=place, sections=shown, way=plan.way, fields=fields(address),
            message="Fill in what the question needs." if not shown else "",
        )  # fmt: skip
        return _html(view, _status(shown))

    async def _search(self, text: str) -> Response:
        results = await Search(self.workers, self.session).results(text)
        if len(results) == 1:
            return RedirectResponse(results[0][1], 303)
        message = "" if results else f"Nothing is named {text!r} in this evidence."
        view = View(
            title=f"{len(results)} results", source=self.source, place="/search", results=results, message=message
        )
        return _html(view, 200 if results else 404)

    async def _group_plan(self, group: str, options: Options) -> Plan:
        address = Address("groups", options_of("groups", (("group", group), *options)))
        try:
            answer = await self._answer(address)
        except PageError:
            return composed.group_page(group, options, "")
        row = answer.parts[0].first_row or {}
        return composed.group_page(group, options, str(row.get("group_type", "")))

    async def _together(self, plan: Plan, options: Options) -> Response:
        shown = await asyncio.gather(*map(self._shown, plan.sections))
        view = View(title=plan.title, source=self.source, place="", sections=shown, way=plan.way, further=plan.further)
        return _html(view, _status(shown))

    async def _shown(self, section: Section) -> Shown:
        address = section.address
        line = address.command_line(self.session)
        try:
            answer = await self._answer(address)
        except PageError as error:
            return Shown(title=section.title, command_line=line, failure=error.line, page=address.url)
        documents = [(words, f"/ask/{address.question}.{ending}{address.query}") for words, ending in DOCUMENTS]
        return Shown(title=section.title, command_line=line, answer=answer, page=address.url, documents=documents)

    async def _answer(self, address: Address) -> PageAnswer:
        return await self.workers.ask(page_answer, address.question, address.words(self.session))

    async def _document(self, address: Address, ending: str) -> Response:
        folder = tempfile.TemporaryDirectory(prefix="sharelens-explore-")
        place = Path(folder.name) / "document"
        try:
            form = "text" if ending == "txt" else ending
            await self.workers.ask(document, address.question, address.words(self.session), form, place)
        except BaseException:
            folder.cleanup()
            raise
        name = None if ending == "txt" else f"{address.question}.{ending}"
        return FileResponse(place, media_type=FORMS[ending], filename=name, background=BackgroundTask(folder.cleanup))

    def _message(self, title: str, message: str, status: int) -> Response:
        return _html(View(title=title, source=self.source, place="", message=message), status)


DOCUMENTS = (("Text", "txt"), ("JSON", "json"), ("CSV", "csv"))


async def _static(request: Request) -> Response:
    try:
        media_type, text = static(request.path_params["name"])
    except KeyError:
        return Response(status_code=404)
    return Response(text, media_type=media_type, headers={"Cache-Control": "private, max-age=86400"})


def _lacks_values(address: Address) -> bool:
    """Whether a parameter that the question needs has no text."""
    keys = {key for key, _ in address.options}
    return any(field.is_required and field.key not in keys for field in fields(address))


def _status(sections: Sequence[Shown]) -> int:
    """404 where no part of a page has an answer."""
    return 404 if sections and all(section.answer is None for section in sections) else 200


def _html(view: View, status: int = 200) -> Response:
    return HTMLResponse(render(view), status)
