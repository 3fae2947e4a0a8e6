"""The Spark session of a run: one that is there already is checked and used; else one is started, quick and quiet."""

import os
import signal
import sys
import sysconfig
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import state_model
from sharelens import providers
from sharelens.configuration.environment import variables_set
from sharelens.configuration.settings import Settings, conf_file
from sharelens.spark.class_archive import archive_options
from sharelens.spark.engine import AUTO, IN_PROCESS
from sharelens.spark.jars import delta_jars
from sharelens.spark.java import find_java, home_for_spark, spark_home
from sharelens.spark.kept_files import keep_folder
from state_model.errors import SharelensError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DELTA_EXTENSION: Final = "io.delta.sql.DeltaSparkSessionExtension"
DELTA_CATALOG: Final = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
REQUIRED_CONF: Final[Mapping[str, str]] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.extensions": DELTA_EXTENSION,
    "spark.sql.catalog.spark_catalog": DELTA_CATALOG,
}
"""What every session must have, whoever started it."""
UTC_NAMES: Final = frozenset({"UTC", "Etc/UTC", "Z"})
JVM_OPTIONS: Final = "spark.driver.extraJavaOptions"
QUICK_COMPILER: Final = "-XX:TieredStopAtLevel=1"


class SessionError(SharelensError):
    """Raised when a Spark session cannot be started, or one that exists is set up so that answers would be wrong."""


def spark_session(app: str, settings: Settings, *, hands_out: bool = False) -> "SparkSession":
    """The session to compute in, named `sharelens:<app>` when it is started here.

    `hands_out`: it gives tasks to Python workers and computes nothing itself, so a JVM that we start compiles quickly
    rather than well, and leaves the cores to the workers.

    Raises:
        JavaError, JarsError: when what Spark needs is missing.
        SessionError: when Spark is not installed, does not start, or an existing session lacks what we rely on.
    """
    try:
        from pyspark import SparkConf, SparkContext
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise SessionError("pyspark is missing; install the extra: pip install 'sharelens[spark]'") from error
    existing = SparkSession.getActiveSession()
    if existing is not None:
        check_session(existing)
        return existing
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    conf = dict(REQUIRED_CONF) if submitted else started_conf(settings, hands_out=hands_out)
    builder = SparkSession.builder.appName(f"sharelens:{app}")
    for key, value in sorted(conf.items()):
        builder = builder.config(key, value)
    with variables_set(_launch_variables(settings, submitted=submitted)):
        try:
            with _interrupts_kept():
                SparkContext.getOrCreate(SparkConf().setAppName(f"sharelens:{app}").setAll(sorted(conf.items())))
            session: SparkSession = builder.getOrCreate()
        except Exception as error:  # whatever py4j, the JVM or the cluster raises: one line for the reader
            raise SessionError(f"Spark did not start at {settings.master}: {_reason(error)}") from error
    check_session(session)
    return session


def _reason(error: Exception) -> str:
    """An error in one line; of a Java exception its own words and those of its last cause, without the stack."""
    words = str(error)
    java = getattr(error, "java_exception", None)
    if java is not None:
        last = java
        while (cause := last.getCause()) is not None:
            last = cause
        words = java.toString() if last is java else f"{java.toString()} (caused by {last.toString()})"
    return " ".join(words.split())[:500]


EVERY_SIZE = 1 << 62


def in_process_bytes(settings: Settings, engine: str = AUTO) -> int:
    """How much a stage may read and still run without Spark, by the option --engine.

    With `auto` 0 on a cluster, and where a session is there already.

    Raises:
        UsageError: the process alone is to compute, and a master of a cluster is set.
    """
    if engine == IN_PROCESS and not is_local(settings.master):
        raise UsageError(f"--engine {IN_PROCESS} and the master {settings.master} of a cluster: leave one of them out")
    if engine != AUTO:
        return EVERY_SIZE if engine == IN_PROCESS else 0
    if not is_local(settings.master) or "PYSPARK_GATEWAY_PORT" in os.environ:
        return 0
    pyspark = sys.modules.get("pyspark.sql")
    there = pyspark is not None and pyspark.SparkSession.getActiveSession() is not None
    return 0 if there else settings.in_process_bytes


def check_session(session: "SparkSession") -> None:
    """Refuse a session whose answers would differ from ours; it is somebody's, so nothing in it is changed.

    Raises:
        SessionError: naming every wrong setting, its value and the required value.
    """
    wrong = []
    for key, required in REQUIRED_CONF.items():
        value = session.conf.get(key, "")
        if not _satisfies(key, value or "", required):
            wrong.append(f"{key} is {value or 'unset'!r}, must be {required!r}")
    if wrong:
        raise SessionError(f"the Spark session {session.sparkContext.appName!r} cannot be used: {'; '.join(wrong)}")


def started_conf(settings: Settings, *, hands_out: bool = False) -> dict[str, str]:
    """Spark's settings for a session that we start: ours, over them the settings', over both what we rely on."""
    chosen = dict(settings.spark_conf)
    logging = f"-Dlog4j2.configurationFile={conf_file('log4j2.properties').as_uri()}"
    jars = delta_jars(settings)
    archived = archive_options(find_java(), jars) if is_local(settings.master) else ()
    compiler = QUICK_COMPILER if hands_out else ""
    conf = {
        "spark.master": settings.master,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.catalogImplementation": "in-memory",
        # Our tables have paths; the folder for others is made all the same, and not where the caller stands.
        "spark.sql.warehouse.dir": (keep_folder() / "warehouse").as_uri(),
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(_import_roots()),
        **_where_conf(settings.master, jars),
        **chosen,
        **REQUIRED_CONF,
        JVM_OPTIONS: " ".join(o for o in (logging, *archived, compiler, chosen.get(JVM_OPTIONS, "")) if o),
    }
    extensions = chosen.get("spark.sql.extensions", "")
    if extensions and DELTA_EXTENSION not in extensions.split(","):
        conf["spark.sql.extensions"] = f"{extensions},{DELTA_EXTENSION}"
    return conf


def is_local(master: str) -> bool:
    """Whether the driver's process does all the work."""
    return master == "local" or master.startswith("local[")


def _where_conf(master: str, jars: Sequence[Path]) -> dict[str, str]:
    """How the jars travel and which interface is used: all at home in local mode, Spark's own ways on a cluster."""
    if not is_local(master):
        return {"spark.jars": ",".join(str(jar) for jar in jars)}
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        **_worker_daemon(),
        "spark.driver.extraClassPath": os.pathsep.join(str(jar) for jar in jars),
    }


def _worker_daemon() -> dict[str, str]:
    """Workers fork from a process that has imported the stages.

    On a cluster our packages may come after the daemon, with the job.
    """
    module = providers.provided_module(providers.SPARK, "worker_daemon")
    return {} if module is None else {"spark.python.daemon.module": module}


def _import_roots() -> list[str]:
    """Folders that workers must search for our packages: none when they are installed into the environment itself."""
    installed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    root = str(Path(state_model.__file__).resolve().parents[1])
    return [] if root in installed else [root]


def _empty_folder() -> Path:
    """For SPARK_CONF_DIR: it is part of the class path, and a class archive bears no folder that is not there."""
    folder = keep_folder() / "no-conf"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _satisfies(key: str, value: str, required: str) -> bool:
    match key:
        case "spark.sql.session.timeZone":
            return value in UTC_NAMES
        case "spark.sql.extensions":
            return required in [name.strip() for name in value.split(",")]
        case _:
            return value.lower() == required.lower()


@contextmanager
def _interrupts_kept() -> Iterator[None]:
    """Restores the handler of SIGINT: the one of pyspark talks to the JVM in the midst of another call, and fails."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and before is not None:
            signal.signal(signal.SIGINT, before)


def _launch_variables(settings: Settings, *, submitted: bool) -> Mapping[str, str]:
    """Variables of the environment in which the JVM starts."""
    added: dict[str, str] = {}
    if not submitted:
        added["JAVA_HOME"] = str(home_for_spark(find_java()))
        if not (spark_home() / "conf").is_dir():
            added["SPARK_CONF_DIR"] = os.environ.get("SPARK_CONF_DIR") or str(_empty_folder())
        # The launcher is a JVM of its own that lives for a moment: the least compiler and collector will do.
        added["SPARK_LAUNCHER_OPTS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        if is_local(settings.master):
            added["SPARK_LOCAL_IP"] = "127.0.0.1"
    # Workers run the interpreter that runs us, or they would miss our packages. On a cluster it may be named otherwise.
    added["PYSPARK_PYTHON"] = os.environ.get("PYSPARK_PYTHON", sys.executable)
    added["PYSPARK_DRIVER_PYTHON"] = sys.executable
    return added
