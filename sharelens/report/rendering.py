"""What pages of the report and of the explorer share: templates that escape all, files of packages, digests."""

import base64
import hashlib
from collections.abc import Callable
from importlib.resources import files

import jinja2

PACKAGE = "sharelens.report"


def text_of(file: str, package: str = PACKAGE) -> str:
    """A file of a package."""
    return files(package).joinpath(file).read_text(encoding="utf-8")


def environment(load: Callable[[str], str]) -> jinja2.Environment:
    """Templates by name; values reach a page as text alone, and a missing one is an error."""
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(load), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip


def script_digest(script: str) -> str:
    """The SHA-256 by which a Content-Security-Policy names a script, in base64."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
