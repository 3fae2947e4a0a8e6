"""A JVM that Python drives through py4j's gateway, so that no compiler is needed."""

import subprocess
from collections.abc import Sequence

from py4j.java_gateway import CallbackServerParameters, GatewayParameters, JavaGateway, launch_gateway

from sharelens.spark.java import find_java, spark_home
from tools.kafka_tools import QUICK_JVM
from tools.kept_jars import ToolUnavailableError

OPTIONS = (*QUICK_JVM, "-Xmx1g")
END_TIMEOUT_S = 120
Process = subprocess.Popen[bytes]


def open_gateway(classes: str, options: Sequence[str] = OPTIONS) -> tuple[JavaGateway, Process]:
    """A JVM with a class path, and its process; the caller ends both. Java can call Python objects.

    Raises:
        ToolUnavailableError: pyspark has no py4j jar. JavaError: no Java.
    """
    java = find_java()
    gateway_jar = next((spark_home() / "jars").glob("py4j-*.jar"), None)
    if gateway_jar is None:
        raise ToolUnavailableError("pyspark has no py4j jar")
    port, process = launch_gateway(
        jarpath=str(gateway_jar), classpath=classes, javaopts=list(options), java_path=str(java.program),
        die_on_exit=True, redirect_stderr=subprocess.DEVNULL, return_proc=True,
    )  # fmt: skip
    gateway = JavaGateway(
        gateway_parameters=GatewayParameters(port=port, auto_convert=True),
        callback_server_parameters=CallbackServerParameters(port=0),
    )
    server = gateway.java_gateway_server
    server.resetCallbackClient(
        server.getCallbackClient().getAddress(), gateway.get_callback_server().get_listening_port()
    )
    return gateway, process


def end_gateway(gateway: JavaGateway, process: Process) -> None:
    """Ends a JVM of `open_gateway`, and waits until it has."""
    gateway.shutdown()
    if process.stdin is not None:
        process.stdin.close()  # its sign to end
    process.wait(END_TIMEOUT_S)
