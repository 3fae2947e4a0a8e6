"""An export as OTLP in JSON: one ExportMetricsServiceRequest, as a collector's otlpjsonfile receiver reads it.

Names of fields are lowerCamelCase and 64-bit integers are strings, as the OTLP specification asks of JSON. The time of
a data point is the end of the evidence it stands for, not the moment of the export.
"""

import json
from typing import Any

from sharelens import __version__
from sharelens.metrics.catalog import Kind, Metric
from sharelens.metrics.samples import Export, Sample

CUMULATIVE = 2
NANOS_PER_MS = 1_000_000


def otlp_json(export: Export) -> bytes:
    """One line of JSON in UTF-8, with its end of line."""
    metrics = [_metric(export, metric, samples) for metric, samples in export.samples.items()]
    scope = {"name": "sharelens", "version": __version__}
    resource = {"attributes": [_attribute("service.name", "sharelens"), _attribute("service.version", __version__)]}
    request = {"resourceMetrics": [{"resource": resource, "scopeMetrics": [{"scope": scope, "metrics": metrics}]}]}
    return json.dumps(request, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def _metric(export: Export, metric: Metric, samples: list[Sample]) -> dict[str, Any]:
    points = {"dataPoints": [_point(export, metric, sample) for sample in samples]}
    described = {"name": metric.twin, "description": metric.text, "unit": metric.unit}
    if metric.kind is Kind.COUNTER:
        return described | {"sum": points | {"aggregationTemporality": CUMULATIVE, "isMonotonic": True}}
    return described | {"gauge": points}


def _point(export: Export, metric: Metric, sample: Sample) -> dict[str, Any]:
    about = None if sample.of is None else export.figures[sample.of]
    point: dict[str, Any] = {
        "attributes": [_attribute(name, label) for name, label in zip(metric.labels, sample.labels, strict=True)]
    }
    if about is None:
        ended_ms = max((figures.read_ms for figures in export.figures), default=0)
    else:
        ended_ms = about.read_ms if about.data_ms is None else about.data_ms
        if metric.kind is Kind.COUNTER and about.first_ms is not None:
            point["startTimeUnixNano"] = str(about.first_ms * NANOS_PER_MS)
    point["timeUnixNano"] = str(ended_ms * NANOS_PER_MS)
    if isinstance(sample.value, int):
        return point | {"asInt": str(sample.value)}
    return point | {"asDouble": sample.value}


def _attribute(key: str, value: str | int) -> dict[str, Any]:
    return {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
