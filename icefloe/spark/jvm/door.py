"""The one door through which Java enters: source texts beside this module, compiled in the JVM of a running Spark.

Spark ships a Java compiler, Janino, for the code that it generates. A text is compiled by it when a feature first needs it,
against the very Spark that runs, and is kept for the life of that JVM; what was compiled, for later ones of the same Spark, too
(`kept_classes`). Tasks get the classes in a jar of a few kilobytes, which is written into Spark's own temporary folder, goes with
it, and is fetched by executors with their first task.

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
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from tempfile import mkdtemp
from weakref import WeakKeyDictionary

from py4j.java_gateway import GatewayClient, JavaObject
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from icefloe.spark.gateway import Gateway, analyzed
from icefloe.spark.jvm import kept_classes
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
_PLATFORMS: MutableMapping[GatewayClient, str | None] = WeakKeyDictionary()
"""What each JVM compiles against; None if classes cannot be kept for it."""
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
            units[name] = _unit(spark, name)
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


def _unit(spark: SparkSession, name: str) -> _Unit | None:
    """The classes of a text: those that were kept, or compiled now and kept if they do what they should."""
    try:
        source = text(name)
        package = "icefloe_" + hashlib.sha256(source.encode()).hexdigest()[:16]
        gateway = Gateway(spark)
        platform = _platform(gateway)
        kept = None if platform is None else kept_classes.Kept(name, source, platform)
        if kept is not None and (classes := kept.load()) is not None:
            try:
                return _loaded(gateway, package, classes)
            except Py4JError as error:
                _log(f"the kept classes of {name} cannot be used", error)
        unit = _loaded(gateway, package, _compiled(gateway, source.replace(_PACKAGE, f"package {package};", 1)))
        if kept is not None:
            kept.store(unit.classes)
        return unit
    except Exception as error:  # noqa: BLE001  # Java throws anything, and every caller can do without
        _log(f"Spark's compiler does not take the Java classes of {name}", error)
        return None


def _platform(gateway: Gateway) -> str | None:
    """What classes are compiled against. The class path is long, and asked for once."""
    client = gateway.spark._jvm._gateway_client
    if client not in _PLATFORMS:
        system = gateway.jvm.java.lang.System
        java, class_path = (str(system.getProperty(key)) for key in ("java.version", "java.class.path"))
        _PLATFORMS[client] = kept_classes.platform(java, class_path)
    return _PLATFORMS[client]


def _compiled(gateway: Gateway, source: str) -> dict[str, bytes]:
    compiler = gateway.jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(gateway.jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(source)
    return {str(class_name): bytes(code) for class_name, code in compiler.getBytecodes().items()}


def _loaded(gateway: Gateway, package: str, classes: Mapping[str, bytes]) -> _Unit:
    jvm = gateway.jvm
    held = jvm.java.util.HashMap()
    for class_name, code in classes.items():
        held.put(class_name, code)
    around = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    loader = jvm.org.codehaus.commons.compiler.util.reflect.ByteArrayClassLoader(held, around)
    constructor = loader.loadClass(f"{package}.Entry").getConstructor(gateway.new_array(jvm.java.lang.Class, 0))
    entry = constructor.newInstance(gateway.new_array(jvm.java.lang.Object, 0))
    return _Unit(package, entry, dict(classes))


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
        jar.write_bytes(kept_classes.packed(unit.classes))
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
