"""Addresses of pages: a question with texts for its options, as the query of a URL and as words of a command line."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlencode

from sharelens.question_table.kinds import Flag
from sharelens.question_table.question import Parameter, Question
from sharelens.question_table.shared import DEAD_LETTER_TOPICS, END_OFFSETS, SETTINGS_FILES, SOURCE, SUPPRESSIONS
from sharelens.question_table.table import question_of
from sharelens.shell import shell_line
from state_model.errors import UsageError

SESSION = (*SOURCE, *DEAD_LETTER_TOPICS, *SETTINGS_FILES, END_OFFSETS, SUPPRESSIONS)
"""Parameters of all pages together: the source, and files, which no address may name."""
SHOWN = frozenset({"--limit", "--columns"})
"""Parameters of the output that an address may have."""
MOMENTS = ("as_of", "from", "to")
SET = frozenset({"on", "1", "true", "yes"})
ESCAPED = frozenset({"", ".", ".."})
"""Path segments that a browser drops."""
Options = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Session:
    """What the command that started the pages was given: by option its texts (of a flag one text, whatever it is)."""

    texts: Mapping[str, Sequence[str]]

    def words(self, question: Question) -> list[str]:
        """The words for a question, as far as it has these parameters."""
        typed = [parameter for parameter in question.parameters if parameter.option in self.texts]
        return [word for parameter in typed for text in self.texts[parameter.option] for word in _word(parameter, text)]

    def words_for(self, name: str) -> list[str]:
        """The words for the question of a name."""
        return self.words(question_of(name))

    @property
    def grows(self) -> bool:
        """Whether the source can have news: a running cluster, or a lake that runs fill."""
        return bool(self.texts.keys() & {"--lake", "--bootstrap-server"})

    @property
    def place(self) -> str:
        """The source in words."""
        return ", ".join(
            text for name in ("--lake", "--log-dir", "--bootstrap-server") for text in self.texts.get(name, ())
        )


@dataclass(frozen=True, slots=True)
class Address:
    """A question with texts for its options, by their keys."""

    question: str
    options: Options = ()

    @property
    def query(self) -> str:
        """The options as the query of a URL; empty without one."""
        return f"?{urlencode(self.options)}" if self.options else ""

    @property
    def url(self) -> str:
        """The page of the question alone."""
        return f"/ask/{self.question}{self.query}"

    def document(self, ending: str) -> str:
        """The answer as a document: txt, json or csv."""
        return f"/ask/{self.question}.{ending}{self.query}"

    def words(self, session: Session) -> list[str]:
        """The words of a command line behind the name of the question.

        Raises:
            UsageError: the question has no such parameter.
        """
        question = question_of(self.question)
        parameters = by_key(question)
        words = session.words(question)
        for key, text in self.options:
            if key not in parameters:
                raise UsageError(f"{self.question}: no parameter {key!r}; there are {', '.join(parameters)}")
            words += _word(parameters[key], text)
        return words

    def command_line(self, session: Session) -> str:
        """The command that gives the same answer."""
        return shell_line(["sharelens", self.question, *self.words(session)])


def by_key(question: Question) -> dict[str, Parameter]:
    """The parameters that an address may have, by key: neither a file nor a source is one."""
    common = {parameter.option for parameter in SESSION}
    return {
        parameter.option_name: parameter
        for parameter in question.parameters
        if parameter.option not in common and (not parameter.is_for_surface or parameter.option in SHOWN)
    }


def options_of(question: str, options: Iterable[tuple[str, str]]) -> Options:
    """Those of the options that a question takes."""
    parameters = by_key(question_of(question))
    return tuple((name, text) for name, text in options if name in parameters)


def path(*names: str) -> str:
    """A path of names, whatever letters they have."""
    return "/" + "/".join(
        quote(f"~{name}" if name in ESCAPED or name.startswith("~") else name, safe="") for name in names
    )


def names_of(raw_path: str) -> tuple[str, ...]:
    """The names of a path as a request has it, undecoded."""
    return tuple(_name(segment) for segment in raw_path.strip("/").split("/") if segment)


def _name(segment: str) -> str:
    text = unquote(segment)
    return text[1:] if text.startswith("~") else text


def _word(parameter: Parameter, text: str) -> tuple[str, ...]:
    if not isinstance(parameter.kind, Flag):
        return (f"{parameter.option}={text}",)
    return (parameter.option,) if text.lower() in SET else ()
