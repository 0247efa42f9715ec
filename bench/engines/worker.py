"""Runs in the process of an engine: a Spark session with icefloe or with Java Iceberg that answers one JSON object a line.

Times are taken here, around the work alone; what is asked for is the same text for both engines.
"""

import json
import os
import re
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any


class Worker:
    """A session, and what can be asked of it."""

    def __init__(self, settings: dict[str, str], name: str) -> None:
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.appName("icefloe-bench")
        for key, value in settings.items():
            builder = builder.config(key, value)
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("ERROR")
        self.is_java = name == "java"
        if name == "icefloe":
            import icefloe

            self.ice = icefloe.connect(spark=self.spark)

    def configure(self, settings: dict[str, str | None]) -> tuple[float, Any]:
        """Settings from now on; None for what Spark has without."""
        for key, value in settings.items():
            self.spark.conf.unset(key) if value is None else self.spark.conf.set(key, value)
        return 0.0, None

    def sql(self, text: str, use: str | None = None) -> tuple[float, Any]:
        """Seconds of a statement from its text to its rows, and the rows as texts; bare names are of the namespace to use."""
        if use is not None:
            self.spark.sql(f"USE {use}")
        seconds, rows = timed(lambda: self.spark.sql(text).collect())
        return seconds, [[_shown(value) for value in row] for row in rows]

    def work(self, text: str) -> tuple[float, Any]:
        """Seconds of a statement, and seconds of the processors for it."""
        return self._both(lambda: self.spark.sql(text).collect())

    def rewrite(self, table: str, sort_order: str | None, options: dict[str, str]) -> tuple[float, Any]:
        """The same for a rewrite of data files as jobs of Spark, however little there is to do; only we have that choice."""
        held = self.ice.load_table(table)
        return self._both(
            lambda: held.maintenance.rewrite_data_files(sort_order=sort_order, options=options, engine=self.spark)
        )

    def _both(self, work: Callable[[], Any]) -> tuple[float, Any]:
        before = processor_seconds()
        seconds, _ = timed(work)
        return seconds, processor_seconds() - before

    def plan(self, table: str, row_filter: str) -> tuple[float, Any]:
        """Seconds to plan a table, and how many files that gave."""
        return self._java_plan(table, row_filter) if self.is_java else self._our_plan(table, row_filter)

    def add(self, table: str, source: str) -> tuple[float, Any]:
        """Seconds to commit all files of one table to another as they are, and how many were committed."""
        return self._java_add(table, source) if self.is_java else self._our_add(table, source)

    def plan_facts(self, text: str) -> tuple[float, Any]:
        """Seconds of a statement, and how many files it read with how many exchanges; only of our scans."""
        frame = self.spark.sql(text)
        seconds, _ = timed(frame.collect)
        nodes = list(_nodes(frame._jdf.queryExecution().executedPlan()))
        scans = [node for node in nodes if node.getClass().getSimpleName() == "FileSourceScanExec"]
        exchanges = [node for node in nodes if node.getClass().getSimpleName() == "ShuffleExchangeExec"]
        return seconds, [sum(int(scan.metrics().apply("numFiles").value()) for scan in scans), len(exchanges)]

    def repeat_file(self, table: str, count: int) -> tuple[float, Any]:
        """Commit the file of a table so many times again, by other names: files that only metadata knows."""
        from dataclasses import replace

        held = self.ice.load_table(table)
        [file] = [task.file for task in held.scan().with_metrics().plan_files()]
        files = [replace(file, file_path=f"{file.file_path}-{number}", first_row_id=None) for number in range(count)]
        return timed(lambda: held.update_snapshot().fast_append(files, check_duplicates=False))[0], count

    def delete_equal(self, table: str, column: str, keys: list[int]) -> tuple[float, Any]:
        """Seconds to delete the rows whose column is in a range of numbers, by an equality delete file; only we write those."""
        return timed(lambda: delete_equal(self.ice.load_table(table), column, range(*keys)))

    def stream(
        self,
        source: str,
        checkpoint: str,
        *,
        to: str | None = None,
        options: dict[str, str] | None = None,
        where: str | None = None,
        columns: list[str] | None = None,
        checks: bool = False,
    ) -> tuple[float, Any]:
        """Seconds of the processors for a stream of all that is there, and rows and sum of ids if it is to check them.

        Sources and targets are tables, or folders of Parquet files; without a target, rows go nowhere.
        """
        frame = self._streamed(source, options or {})
        frame = frame if where is None else frame.where(where)
        frame = frame if columns is None else frame.select(*columns)
        seen = [0, 0]

        def look(batch: Any, _: int) -> None:
            rows, total = batch.selectExpr("count(*)", "coalesce(sum(id), 0)").first()
            seen[:] = seen[0] + rows, seen[1] + total

        writer = frame.writeStream.trigger(availableNow=True).option("checkpointLocation", checkpoint)
        if checks:
            start = writer.foreachBatch(look).start
        elif to is None:
            start = writer.format("noop").start
        elif "/" in to:
            start = writer.format("parquet").option("path", to).start
        elif self.is_java:
            start = lambda: writer.format("iceberg").toTable(to)  # noqa: E731 - one of four ways to start
        else:
            write = self.ice.write_stream(frame).to(to).trigger(availableNow=True)
            start = lambda: write.start(checkpoint)  # noqa: E731 - as above
        before = processor_seconds()
        start().awaitTermination()
        return processor_seconds() - before, seen

    def _streamed(self, source: str, options: dict[str, str]) -> Any:
        if "/" in source:
            reader = self.spark.readStream.schema(self.spark.read.parquet(source).schema)
            return reader.options(**options).parquet(source)
        if self.is_java:
            return self.spark.readStream.options(**options).table(source)
        return self.ice.read_stream(source, options)

    def peak(self) -> tuple[float, Any]:
        """The most memory of this process and of its Spark, in MiB."""
        return 0.0, [_peak(os.getpid()), _peak(self.spark.sparkContext._gateway.proc.pid)]

    def _our_plan(self, table: str, row_filter: str) -> tuple[float, Any]:
        held = self.ice.load_table(table)
        return timed(lambda: sum(1 for _ in held.scan(row_filter or None).plan_files()))

    def _java_plan(self, table: str, row_filter: str) -> tuple[float, Any]:
        held = self._java_table(table)
        jvm = self.spark._jvm
        count = jvm.org.apache.iceberg.relocated.com.google.common.collect.Iterables.size
        scan = held.newScan()
        for condition in filter(None, row_filter.split(" and ")):
            scan = scan.filter(self._java_condition(condition))
        return timed(lambda: count(scan.planFiles()))

    def _java_condition(self, text: str) -> Any:
        found = re.fullmatch(r"(\w+) (=|>=|<) '?([^']+)'?", text)
        assert found is not None, text
        name, sign, value = found.groups()
        make = getattr(
            self.spark._jvm.org.apache.iceberg.expressions.Expressions,
            {"=": "equal", ">=": "greaterThanOrEqual", "<": "lessThan"}[sign],
        )
        return make(name, int(value) if value.isdigit() else value)

    def _our_add(self, table: str, source: str) -> tuple[float, Any]:
        from dataclasses import replace

        files = [replace(task.file, first_row_id=None) for task in self.ice.load_table(source).scan().plan_files()]
        append = self.ice.load_table(table).update_snapshot()
        seconds, _ = timed(lambda: append.fast_append(files, check_duplicates=False))
        return seconds, len(files)

    def _java_add(self, table: str, source: str) -> tuple[float, Any]:
        """The files are held as values before the time runs, as ours are, and handed over inside the JVM."""
        append = self._java_table(table).newFastAppend()
        collect = self.spark._jvm.org.apache.iceberg.relocated.com.google.common.collect.Lists.newArrayList
        tasks = collect(self._java_table(source).newScan().planFiles())
        hand_over = self._java_consumer(append)

        def work() -> None:
            tasks.forEach(hand_over)
            append.commit()

        seconds, _ = timed(work)
        return seconds, tasks.size()

    def _java_consumer(self, append: Any) -> Any:
        """What gives the file of a task to an append, made of method handles: a call from Python for each takes minutes."""
        jvm = self.spark._jvm
        loader = append.getClass().getClassLoader()
        of_append, of_data, of_task, of_content = (
            loader.loadClass(f"org.apache.iceberg.{name}")
            for name in ("AppendFiles", "DataFile", "FileScanTask", "ContentFile")
        )
        handles, kind = jvm.java.lang.invoke.MethodHandles, jvm.java.lang.invoke.MethodType.methodType
        lookup = handles.publicLookup()
        file_of = lookup.findVirtual(of_task, "file", kind(of_content)).asType(kind(of_data, of_task))
        give = lookup.findVirtual(of_append, "appendFile", kind(of_append, of_data)).bindTo(append)
        filters = self.spark.sparkContext._gateway.new_array(jvm.java.lang.invoke.MethodHandle, 1)
        filters[0] = file_of
        given = handles.filterArguments(give, 0, filters)
        consumer = jvm.java.lang.Class.forName("java.util.function.Consumer")
        return jvm.java.lang.invoke.MethodHandleProxies.asInterfaceInstance(consumer, given)

    def _java_table(self, name: str) -> Any:
        return self.spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(self.spark._jsparkSession, name)


def _nodes(plan: Any) -> Any:
    """All nodes of a physical plan, also of one that was adapted."""
    name = plan.getClass().getSimpleName()
    if name == "AdaptiveSparkPlanExec":
        yield from _nodes(plan.finalPhysicalPlan())
        return
    yield plan
    if name.endswith("QueryStageExec"):
        yield from _nodes(plan.plan())
    for place in range(plan.children().size()):
        yield from _nodes(plan.children().apply(place))


def delete_equal(table: Any, column: str, keys: range) -> None:
    """Commit an equality delete file with the keys."""
    import pyarrow as pa

    from icefloe.data.file_rolling import data_file_of
    from icefloe.formats.equality_deletes import equality_delete_writer
    from icefloe.manifests import FileContent

    ids = (table.schema().find_field(column).field_id,)
    location = f"{table.location()}/data/equality-deletes.parquet"
    with table.storage.open_output(location) as sink:
        writer = equality_delete_writer(sink, table.schema(), ids, table.format_version)
        writer.write(pa.table({column: pa.array(keys, pa.int64())}))
        done = writer.close()
    file = data_file_of(done, location, "parquet", content=FileContent.EQUALITY_DELETES, equality_ids=ids)
    table.update_snapshot().row_delta(None, deletes=[file])


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of the work, and what it gave."""
    start = time.perf_counter()
    found = work()
    return time.perf_counter() - start, found


def processor_seconds() -> float:
    """Seconds of the processors that this process and all below it have used: what else the machine does matters little."""
    used, parents = dict[int, float](), dict[int, int]()
    for each in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{each}/stat") as status:
                fields = status.read().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(each)] = int(fields[1])
        # Its own seconds, and those of its children that have ended.
        used[int(each)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    own = {os.getpid()}
    while more := {each for each, parent in parents.items() if parent in own} - own:
        own |= more
    return sum(used[each] for each in own if each in used)


def _shown(value: Any) -> str:
    """A value as a text; the last digits of floating sums depend on the order of tasks."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _peak(process: int) -> int:
    with open(f"/proc/{process}/status") as status:
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read())
    return int(found[1]) // 1024 if found else 0


def main() -> None:
    """Answer until the input ends."""
    # The JVM writes to the standard output too: the answers get a descriptor of their own.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(what: dict[str, Any]) -> None:
        answers.write(json.dumps(what) + "\n")
        answers.flush()

    first = json.loads(sys.stdin.readline())
    worker = Worker(first["settings"], first["name"])
    say({"seconds": 0.0, "found": worker.spark.version})
    for line in sys.stdin:
        request = json.loads(line)
        try:
            seconds, found = getattr(worker, request.pop("do"))(**request)
            say({"seconds": seconds, "found": found})
        except Exception as error:  # noqa: BLE001 - any failure is an answer
            say({"error": f"{type(error).__name__}: {error}\n{traceback.format_exc(limit=-3)}"})
    worker.spark.stop()


if __name__ == "__main__":
    main()
