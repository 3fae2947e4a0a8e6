"""Great Expectations: a context in memory, a suite and a checkpoint for each table and view, nothing sent home.

Views of a table: the slice's rows, in pieces, and the facts, its shape among them (`jobs.quality.facts`). Frames are
Arrow's columns under pandas, so that numbers stay what they are and nulls stay nulls. The level of a rule is the
severity of its expectation.
"""

import logging
import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from jobs.errors import JobError
from jobs.quality.rule import BLOCKING, Rule, suite_name

SHOWN = 5
"""Unexpected values that a result names."""
NO_ROWS = "no rows"
LONGEST = 500
"""Characters of a text in a result."""
SITE = "sharelens"


@dataclass(slots=True, kw_only=True)
class Verdict:
    """What became of a rule; `success` None: not judged. `unexpected`: values that did not meet it."""

    rule: Rule
    success: bool | None
    unexpected: int = 0
    observed: str = ""
    details: str = ""


class Judge:
    """Runs checkpoints. `data_docs`: the folder that `publish_docs` fills."""

    def __init__(self, data_docs: Path | None = None) -> None:
        self._gx = library()
        self._context = self._gx.get_context(mode="ephemeral")
        self._context.variables.progress_bars = {"globally": False}
        asset = self._context.data_sources.add_pandas("lake").add_dataframe_asset("slice")
        self._batch = asset.add_batch_definition_whole_dataframe("slice")
        self._data_docs = data_docs
        if data_docs is not None:
            self._context.add_data_docs_site(SITE, _site(data_docs))

    def judge(self, view: str, rules: Sequence[Rule], frames: Iterable[pa.Table]) -> list[Verdict]:
        """Judges rules of one table and view over all frames; where there is no frame, nothing breaks a rule.

        No checkpoint is made for nothing: the library takes a tenth of a second and more for each, rows or not.
        """
        checkpoint = None
        verdicts = {rule.name: Verdict(rule=rule, success=True, observed=NO_ROWS) for rule in rules}
        for frame in frames if rules else ():
            checkpoint = checkpoint or self._checkpoint(view, rules)
            found = _run(checkpoint, frame)
            for one in next(iter(found.run_results.values())).results:
                _take(verdicts[one.expectation_config.meta["rule"]], one)
        return list(verdicts.values())

    def _checkpoint(self, view: str, rules: Sequence[Rule]) -> Any:
        from jobs.quality import own

        name = suite_name(rules[0].table, view)
        suite = self._gx.ExpectationSuite(name=name, expectations=[_expectation(rule) for rule in rules])
        kind: type[own.Definition] = own.Passing
        if self._data_docs is not None:  # docs are made of what is in the stores
            kind, suite = own.Definition, self._context.suites.add(suite)
        definition = kind(name=name, data=self._batch, suite=suite)
        form = {"result_format": "BASIC", "partial_unexpected_count": SHOWN}
        return own.Checkpoint(name=name, validation_definitions=[definition], result_format=form)

    def publish_docs(self) -> None:
        """Writes the data docs of everything that was judged."""
        if self._data_docs is None:
            return
        self._data_docs.mkdir(mode=0o700, parents=True, exist_ok=True)
        _quietly(lambda: self._context.build_data_docs(site_names=[SITE]))


def library() -> Any:
    """The library, with its analytics off and its own warnings kept to itself.

    Raises:
        JobError: it is not installed.
    """
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import great_expectations
    except ImportError as error:
        raise JobError(
            f"checks need Great Expectations ({error}); install it with: pip install 'sharelens[quality]'"
        ) from error
    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    return great_expectations


def _run(checkpoint: Any, frame: pa.Table) -> Any:
    return _quietly(lambda: checkpoint.run(batch_parameters={"dataframe": _pandas(frame)}))


def _quietly(call: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()


def _site(folder: Path) -> dict[str, Any]:
    page, links, index = (
        {"module_name": "jobs.quality.pages", "class_name": one} for one in ("Page", "Links", "Index")
    )
    return {
        "class_name": "SiteBuilder",
        "show_how_to_buttons": False,
        "store_backend": {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(folder.absolute())},
        "site_index_builder": {"class_name": "DefaultSiteIndexBuilder", "renderer": links, "view": index},
        "site_section_builders": {"expectations": {"view": page}, "validations": {"view": page}},
    }


def _expectation(rule: Rule) -> Any:
    from jobs.quality import own

    notes = [f"{rule.name}: {rule.meaning}"]
    severity = "critical" if rule.level == BLOCKING else "warning"
    made = own.expectation(rule.expectation)
    return made(**rule.arguments, meta={"rule": rule.name, "kind": rule.kind}, notes=notes, severity=severity)


def _pandas(frame: pa.Table) -> Any:
    import pandas as pd

    return pd.DataFrame({name: pd.arrays.ArrowExtensionArray(frame.column(name)) for name in frame.column_names})


def _take(verdict: Verdict, result: Any) -> None:
    """Adds what one piece showed."""
    found = result.result
    raised = _raised(result.exception_info)
    unexpected = int(found.get("unexpected_count") or 0)
    verdict.unexpected += unexpected
    if not result.success:
        if verdict.success:
            verdict.observed, verdict.details = _observed(found), raised[:LONGEST]
        verdict.success = False
    elif verdict.success:
        verdict.observed = _observed(found)


def _raised(info: Any) -> str:
    """The message of an exception inside an expectation; empty when there was none."""
    entries = [info] if "raised_exception" in info else list(info.values())
    told = [str(entry["exception_message"]) for entry in entries if entry.get("raised_exception")]
    return "; ".join(" ".join(message.split()) for message in told)


def _observed(found: Any) -> str:
    if "unexpected_count" in found:
        values = found.get("partial_unexpected_list") or []
        shown = f", such as {', '.join(map(str, values))}" if values else ""
        judged = found["element_count"] - found.get("missing_count", 0)
        return f"{found['unexpected_count']} of {judged} unexpected{shown}"[:LONGEST]
    value = found.get("observed_value")
    return ("nothing" if value is None else str(value))[:LONGEST]
