"""Where stages compute: the values of the option --engine."""

AUTO, ON_SPARK, IN_PROCESS = "auto", "spark", "local"
"""By how much they read; on Spark alone; in the process alone."""
