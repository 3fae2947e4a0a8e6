"""Severities of findings, and the Kafka versions that rules tell apart."""

ERROR, WARNING, INFO = "error", "warning", "info"
SEVERITIES = (ERROR, WARNING, INFO)
"""The worst first."""
VERSIONS = ("4.1", "4.2", "4.3", "4.4")
"""Kafka versions that rules tell apart."""
