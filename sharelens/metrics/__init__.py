"""The answers as metrics: Prometheus' text, or OpenTelemetry's names in OTLP's JSON."""

from state_model.columnar.startup import import_arrow_without_pandas

import_arrow_without_pandas()
