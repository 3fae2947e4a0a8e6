"""`sharelens explore`: pages for a browser, over a lake, log directories or a running cluster."""

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import click

from sharelens.cli.asking import option
from sharelens.cli.extras import ensure_libraries
from sharelens.cli.interrupts import unwinding_on_sigterm
from sharelens.cli.listening import listen_address
from sharelens.cli.options.common import Command, Duration, Size, examples, stacked
from sharelens.output import tell
from sharelens.pages.address import SESSION, Session
from sharelens.question_table.kinds import Flag
from state_model.errors import UsageError

LIBRARIES = ("altair", "jinja2", "pebble", "starlette", "uvicorn", "vl_convert")
DEFAULT_PORT = 8932
MS_PER_S = 1000


class _Explore(click.Command):
    """Keeps the texts of its options, as questions get them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses as click does."""
        texts, _, _ = self.make_parser(ctx).parse_args(list(args))
        ctx.meta[__name__] = texts
        return super().parse_args(ctx, args)


def _with_session(command: Command) -> Command:
    """Adds the options of the source and of files of settings."""
    return stacked(command, [option(parameter) for parameter in SESSION])


@click.command(
    cls=_Explore,
    short_help="Pages for a browser: walk through an incident.",
    epilog=examples(
        "sharelens explore --lake ./lake",
        "sharelens explore --log-dir /var/kafka-copy --port 9000 --idle-exit 30m",
        "sharelens explore --bootstrap-server localhost:9092",
    ),
)
@_with_session
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    metavar="N",
    help=f"Port on 127.0.0.1 (0: a free one).  [default: {DEFAULT_PORT}]",
)
@click.option("--listen", metavar="HOST:PORT", help="Listen there; another host than loopback needs --allow-remote.")
@click.option("--allow-remote", is_flag=True, help="With --listen and --token-file, serve other machines too.")
@click.option("--token-file", metavar="FILE", help="A file with the token of the link.  [default: a random one]")
@click.option("--idle-exit", type=Duration(), metavar="DURATION", help="End after so long without a request.")
@click.option(
    "--timeout",
    type=Duration("s", least_ms=1000),
    default="1m",
    show_default=True,
    metavar="DURATION",
    help="Longest time of one question.",
)
@click.option(
    "--max-memory",
    type=Size(),
    default="2G",
    show_default=True,
    metavar="BYTES",
    help="Most memory of each of the two processes that ask questions.",
)
@click.pass_context
def explore(
    context: click.Context,
    /,
    *,
    port: int | None,
    listen: str | None,
    allow_remote: bool,
    token_file: str | None,
    idle_exit: int | None,
    timeout: int,
    max_memory: int,
    **_: Any,
) -> None:
    """Serves pages over the answers of all questions, and prints the link to the first one.

    Each page shows the command that gives the same answer. Pages are read only; who has the link can read all of the
    evidence.
    """
    ensure_libraries("explore", LIBRARIES)
    host, number = _place(port, listen, allow_remote=allow_remote, token_file=token_file)
    session = _session(context)
    from sharelens.pages.access import Access, Guard, remote_hosts, token_of
    from sharelens.pages.answers import ensure_evidence
    from sharelens.pages.serving import listening_socket, serve
    from sharelens.pages.site import Site
    from sharelens.pages.workers import Workers

    listener = listening_socket(host, number)
    number = listener.getsockname()[1]
    access = Access(
        token=token_of(token_file),
        cookie=f"sharelens-{number}",
        hosts=remote_hosts(host) if allow_remote else frozenset(),
    )
    processes = partial(Workers, timeout_s=timeout / MS_PER_S, most_bytes=max_memory)
    with unwinding_on_sigterm(), processes() as workers, processes(processes=1) as drawers:
        workers.ask_now(ensure_evidence, "groups", session.words_for("groups"))
        site = Site(workers=workers, drawers=drawers, session=session, source=session.place)
        serve(
            Guard(site, access),
            listener,
            idle_exit_s=None if idle_exit is None else idle_exit / MS_PER_S,
            announce=lambda: _announce(host, number, access.token, is_remote=allow_remote),
        )


def _place(port: int | None, listen: str | None, *, allow_remote: bool, token_file: str | None) -> tuple[str, int]:
    if listen is None:
        if allow_remote:
            raise UsageError("explore: --allow-remote goes with --listen")
        return "127.0.0.1", DEFAULT_PORT if port is None else port
    if port is not None:
        raise UsageError("explore: --listen has the port; leave out --port")
    if allow_remote and token_file is None:
        raise UsageError("explore: --allow-remote needs --token-file, so that the token is one that you chose")
    return listen_address("explore", listen, allow_remote=allow_remote)


def _session(context: click.Context) -> Session:
    """The source and files as they were typed, or as the environment has them."""
    typed: dict[str, Any] = context.meta[__name__]
    texts: dict[str, Sequence[str]] = {}
    for parameter in SESSION:
        text = typed.get(parameter.key)
        if text is None and not isinstance(parameter.kind, Flag):
            source = context.get_parameter_source(parameter.key)
            text = context.params.get(parameter.key) if source is click.core.ParameterSource.ENVIRONMENT else None
        if text not in (None, (), [], False):
            texts[parameter.option] = ["on"] if text is True else [text] if isinstance(text, str) else list(text)
    return Session(texts)


def _announce(host: str, port: int, token: str, *, is_remote: bool) -> None:
    place = f"{f'[{host}]' if ':' in host else host}:{port}"
    tell(f"http://{place}/?token={token}")
    if not is_remote:
        tell(f"from another machine: ssh -L {port}:127.0.0.1:{port} THIS-MACHINE, then the same link there")
    tell("Ctrl-C ends it")
    sys.stdout.flush()


COMMANDS = (explore,)
