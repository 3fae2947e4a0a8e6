"""Great Expectations: a context in memory, a suite for each table and view, analytics off.

Views of a table: the slice's rows, in pieces, and the facts, its shape among them (`jobs.quality.facts`). Frames are
Arrow's columns under pandas, so that numbers stay what they are and nulls stay nulls. The level of a rule is the
severity of its expectation.
"""

import logging
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from jobs.errors import JobError
from jobs.quality.met import NO_VALUE, observed_if_met, unexpected_text
from jobs.quality.rule import BLOCKING, Rule, suite_name

SHOWN = 5
"""Unexpected values that a result names."""
NO_ROWS = "no rows"
LONGEST = 500
"""Characters of a text in a result."""
RESULT_FORMAT = {"result_format": "BASIC", "partial_unexpected_count": SHOWN}
SITE = "sharelens"


@dataclass(slots=True, kw_only=True)
class Verdict:
    """The result of a rule; `success` None: not judged. `unexpected`: how many values did not meet it."""

    rule: Rule
    success: bool | None
    unexpected: int = 0
    observed: str = ""
    details: str = ""


class Judge:
    """Validates frames. `data_docs`: the folder that `publish_docs` fills."""

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
        """Verdicts on rules of one table and view over all frames; without a frame nothing breaks a rule.

        No suite is made where there is no frame: each costs a tenth of a second and more, rows or not. A rule that
        Arrow shows to be met (`jobs.quality.met`) is left out of the suite, unless data docs show it.
        """
        validate = None
        in_suite: list[Rule] = []
        verdicts = {rule.name: Verdict(rule=rule, success=True, observed=NO_ROWS) for rule in rules}
        for frame in frames if rules else ():
            observed = {} if self._data_docs is not None else {r.name: observed_if_met(r, frame) for r in rules}
            judged = [rule for rule in rules if observed.get(rule.name) is None]
            for name, text in observed.items():
                if text is not None and verdicts[name].success:
                    verdicts[name].observed = text
            if judged and (validate is None or judged != in_suite):
                validate, in_suite = self._validation(view, judged), judged
            if judged and validate is not None:
                for result in _quietly(partial(validate, {"dataframe": _pandas(frame)})):
                    _add(verdicts[result.expectation_config.meta["rule"]], result)
        return list(verdicts.values())

    def _validation(self, view: str, rules: Sequence[Rule]) -> Callable[[dict[str, Any]], Any]:
        """Results of the rules over a frame; for data docs through a checkpoint, whose results go into the stores."""
        name = suite_name(rules[0].table, view)
        suite = self._gx.ExpectationSuite(name=name, expectations=[_expectation(self._gx, rule) for rule in rules])
        if self._data_docs is None:
            return lambda frame: self._batch.get_batch(frame).validate(suite, result_format=RESULT_FORMAT).results
        suite = self._context.suites.add(suite)
        definition = self._gx.ValidationDefinition(name=name, data=self._batch, suite=suite)
        definition = self._context.validation_definitions.add(definition)
        checkpoint = self._context.checkpoints.add(
            self._gx.Checkpoint(name=name, validation_definitions=[definition], result_format=RESULT_FORMAT)
        )
        return lambda frame: next(iter(checkpoint.run(batch_parameters=frame).run_results.values())).results

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


def _quietly(call: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()


def _site(folder: Path) -> dict[str, Any]:
    page, links, index = (
        {"module_name": "jobs.quality.pages", "class_name": name} for name in ("Page", "Links", "Index")
    )
    return {
        "class_name": "SiteBuilder",
        "show_how_to_buttons": False,
        "store_backend": {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(folder.absolute())},
        "site_index_builder": {"class_name": "DefaultSiteIndexBuilder", "renderer": links, "view": index},
        "site_section_builders": {"expectations": {"view": page}, "validations": {"view": page}},
    }


def _expectation(gx: Any, rule: Rule) -> Any:
    notes = [f"{rule.name}: {rule.meaning}"]
    severity = "critical" if rule.level == BLOCKING else "warning"
    expectation = getattr(gx.expectations, rule.expectation)
    return expectation(**rule.arguments, meta={"rule": rule.name, "kind": rule.kind}, notes=notes, severity=severity)


def _pandas(frame: pa.Table) -> Any:
    import pandas as pd

    return pd.DataFrame({name: pd.arrays.ArrowExtensionArray(frame.column(name)) for name in frame.column_names})


def _add(verdict: Verdict, result: Any) -> None:
    """Adds the result of one frame to a verdict: counts add up, the first failure is described."""
    figures = result.result
    verdict.unexpected += int(figures.get("unexpected_count") or 0)
    if not result.success:
        if verdict.success:
            verdict.observed, verdict.details = _observed(figures), _raised(result.exception_info)[:LONGEST]
        verdict.success = False
    elif verdict.success:
        verdict.observed = _observed(figures)


def _raised(info: Any) -> str:
    """The message of an exception inside an expectation; empty when there was none."""
    entries = [info] if "raised_exception" in info else list(info.values())
    messages = [str(entry["exception_message"]) for entry in entries if entry.get("raised_exception")]
    return "; ".join(" ".join(message.split()) for message in messages)


def _observed(figures: Any) -> str:
    if "unexpected_count" in figures:
        values = figures.get("partial_unexpected_list") or []
        shown = f", such as {', '.join(map(str, values))}" if values else ""
        judged = figures["element_count"] - figures.get("missing_count", 0)
        return f"{unexpected_text(figures['unexpected_count'], judged)}{shown}"[:LONGEST]
    value = figures.get("observed_value")
    return (NO_VALUE if value is None else str(value))[:LONGEST]
