"""The one door through which Java enters: source texts beside this module, compiled in the JVM of a running Spark.

Spark ships a Java compiler, Janino, for the code that it generates. A text is compiled by it when a feature first needs it,
against the very Spark that runs, and is kept for the life of that JVM. Tasks get the classes in a jar of a few
kilobytes, which is written into Spark's own temporary folder, goes with it, and is fetched by executors with their first task.

Whoever calls `entry` must be able to do without: it answers None on Spark Connect, where `spark.icefloe.jvm.enabled`
is false, and where anything that is needed is missing, which is logged once.

A text `icefloe/spark/jvm/NAME.java` begins with `package PACKAGE;` and has a public class `Entry` with a public constructor
without arguments. Its methods are what Python calls. Its constructor throws if the Spark that runs lacks what the
classes rely on, such as private fields, so that this is known before a task fails by it. The name of the package is a
hash of the text, so that classes of two versions of icefloe never meet. Janino knows no lambdas, no `var` and no inferred
type arguments, and generic types are best left out, with casts in their place.
"""

import hashlib
import logging
import threading
import zipfile
from collections.abc import MutableMapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from tempfile import mkdtemp
from weakref import WeakKeyDictionary

from py4j.java_gateway import GatewayClient, JavaObject
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from icefloe.spark.gateway import Gateway, analyzed
from icefloe.spark.spark_sessions import forget_clones, is_classic, is_on as is_set

logger = logging.getLogger("icefloe.spark")

ENABLED = "spark.icefloe.jvm.enabled"
"""A setting of sessions; false leaves Java out, and every feature takes its other path."""
_ISOLATED = "spark.sql.artifact.isolation.enabled"
_PACKAGE = "package PACKAGE;"


@dataclass(frozen=True)
class _Unit:
    """A text that was compiled: its package, its entry, and its classes by name."""

    package: str
    entry: JavaObject
    classes: dict[str, bytes]


_UNITS: MutableMapping[GatewayClient, dict[str, _Unit | None]] = WeakKeyDictionary()
"""Texts by name, for each connection to a JVM; None if the text cannot be used there. They outlive `spark.stop()`."""
_SENT: MutableMapping[SparkContext, dict[tuple[str, str | None], bool]] = WeakKeyDictionary()
"""Whether tasks know a package, in one session or in all."""
_LOCK = threading.RLock()


def is_on(spark: SparkSession) -> bool:
    """Whether Java may be used for a session."""
    return is_classic(spark) and is_set(spark, ENABLED, "true")


def entry(spark: SparkSession, name: str, *, in_tasks: bool = False) -> JavaObject | None:
    """The entry of the text NAME.java, the same for all calls in a JVM; None if a session has to do without it.

    Args:
        spark: the session whose queries will use it.
        name: the text, without its suffix.
        in_tasks: whether tasks see the classes, too; otherwise they are the driver's alone.
    """
    if not is_on(spark):
        return None
    with _LOCK:
        units = _UNITS.setdefault(spark._jvm._gateway_client, {})
        if name not in units:
            units[name] = _compiled(spark, name)
        unit = units[name]
        if unit is None or (in_tasks and not _is_sent(spark, name, unit)):
            return None
        return unit.entry


def send_early(spark: SparkSession, name: str) -> None:
    """Send a text's classes to a session that has artifacts of its own, so that clones of it know them, such as those of streams."""
    if is_on(spark) and _is_isolated(spark):
        entry(spark, name, in_tasks=True)


def in_session(frame: DataFrame, spark: SparkSession) -> DataFrame:
    """The same plan in another session, whose tasks know all classes that the plan may need."""
    with _LOCK:
        isolated = {package for package, session in _SENT.get(spark.sparkContext, {}) if session is not None}
        if isolated:
            for name, unit in _UNITS[spark._jvm._gateway_client].items():
                if unit is not None and unit.package in isolated:
                    _is_sent(spark, name, unit)
    return Gateway(spark).frame_of(analyzed(frame))


def text(name: str) -> str:
    """The source text of a name."""
    return files("icefloe.spark.jvm").joinpath(f"{name}.java").read_text("utf-8")


def _compiled(spark: SparkSession, name: str) -> _Unit | None:
    try:
        return _compile(spark, text(name))
    except Exception as error:  # noqa: BLE001  # Java throws anything, and every caller can do without
        _log(f"Spark's compiler does not take the Java classes of {name}", error)
        return None


def _compile(spark: SparkSession, source: str) -> _Unit:
    package = "icefloe_" + hashlib.sha256(source.encode()).hexdigest()[:16]
    gateway = Gateway(spark)
    jvm = gateway.jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(source.replace(_PACKAGE, f"package {package};", 1))
    classes = {str(class_name): bytes(code) for class_name, code in compiler.getBytecodes().items()}
    entry_class = compiler.getClassLoader().loadClass(f"{package}.Entry")
    constructor = entry_class.getConstructor(gateway.new_array(jvm.java.lang.Class, 0))
    return _Unit(package, constructor.newInstance(gateway.new_array(jvm.java.lang.Object, 0)), classes)


def _is_sent(spark: SparkSession, name: str, unit: _Unit) -> bool:
    """Whether tasks of the session know the classes; they are sent if nobody did that yet."""
    is_isolated = _is_isolated(spark)
    key = unit.package, str(spark._jsparkSession.sessionUUID()) if is_isolated else None
    sent = _SENT.setdefault(spark.sparkContext, {})
    if key not in sent:
        try:
            _send(spark, unit, is_isolated=is_isolated)
            sent[key] = True
        except Exception as error:  # noqa: BLE001  # as above
            _log(f"Spark does not take the jar with the Java classes of {name}", error)
            sent[key] = False
    return sent[key]


def _is_isolated(spark: SparkSession) -> bool:
    """Whether tasks of a session see artifacts of that session alone: PySpark turns that off where it makes a session itself."""
    try:
        return str(spark.conf.get(_ISOLATED)).lower() == "true"
    except PySparkException:
        # This Spark has no such setting.
        return False


def _send(spark: SparkSession, unit: _Unit, *, is_isolated: bool) -> None:
    context = spark.sparkContext
    scala_context = context._jsc.sc()
    jar = Path(context._temp_dir or mkdtemp(), f"{unit.package}.jar")
    if not jar.exists():
        with zipfile.ZipFile(jar, "w") as archive:
            for class_name, code in sorted(unit.classes.items()):
                # Without the time, as Spark refuses another file of the name, which an earlier driver may have sent to the session.
                archive.writestr(zipfile.ZipInfo(class_name.replace(".", "/") + ".class"), code)
    if is_isolated:
        spark._jsparkSession.addArtifact(str(jar))
        forget_clones(spark)
    else:
        scala_context.addJar(str(jar))
    # Spark only logs it if that fails.
    if jar.name not in str(scala_context.listJars().mkString(" ")):
        raise RuntimeError("it is not among the jars that Spark lists")


def _log(what: str, error: Exception) -> None:
    """Log why a text is not used, in one line."""
    java = getattr(error, "java_exception", None)
    reason = str(error if java is None else java.toString()).strip().splitlines()
    logger.warning("%s, and the path without them is used: %s", what, reason[0] if reason else type(error).__name__)
