// A table as the source and the sink of streaming queries: what Spark asks often is answered here, and Python is asked the rest in texts.
package PACKAGE;

import java.util.HashMap;
import java.util.Optional;
import java.util.function.BiFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.connector.read.streaming.ReadAllAvailable;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.execution.streaming.Offset;
import org.apache.spark.sql.execution.streaming.Sink;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/** What Python calls. */
public class Entry {
  /** A source whose offsets and batches Python knows; its limits too, so that Spark only learns by one whether there are any. */
  public Source source(BiFunction python, String name, StructType schema, ReadLimit limit) {
    return new TableSource(python, name, schema, limit);
  }

  /** A sink whose batches Python commits. */
  public Sink sink(BiFunction python, String name) {
    return new TableSink(python, name);
  }
}

/** A place in the history of a table, by its text. */
class TextOffset extends Offset {
  private final String text;

  TextOffset(String text) {
    this.text = text;
  }

  public String json() {
    return text;
  }
}

class TableSource implements Source, SupportsTriggerAvailableNow, ReportsSourceMetrics {
  private final BiFunction python;
  private final String name;
  private final StructType schema;
  private final ReadLimit limit;

  TableSource(BiFunction python, String name, StructType schema, ReadLimit limit) {
    this.python = python;
    this.name = name;
    this.schema = schema;
    this.limit = limit;
  }

  public StructType schema() {
    return schema;
  }

  public Option getOffset() {
    throw new UnsupportedOperationException("latestOffset is asked of a source with limits");
  }

  public Dataset getBatch(Option start, Offset end) {
    String first = start.isEmpty() ? "" : ((Offset) start.get()).json();
    return (Dataset) python.apply("batch", first + "\0" + end.json());
  }

  public org.apache.spark.sql.connector.read.streaming.Offset initialOffset() {
    throw new UnsupportedOperationException("a source of this kind has no first offset");
  }

  public org.apache.spark.sql.connector.read.streaming.Offset deserializeOffset(String text) {
    return new TextOffset(text);
  }

  public void commit(org.apache.spark.sql.connector.read.streaming.Offset end) {}

  public void commit(Offset end) {}

  public void stop() {
    python.apply("stop", null);
  }

  public ReadLimit getDefaultReadLimit() {
    return limit;
  }

  public org.apache.spark.sql.connector.read.streaming.Offset latestOffset(
      org.apache.spark.sql.connector.read.streaming.Offset start, ReadLimit limit) {
    String asked = limit instanceof ReadAllAvailable ? "latest of all" : "latest";
    String found = (String) python.apply(asked, start == null ? null : start.json());
    return found == null ? start : new TextOffset(found);
  }

  public org.apache.spark.sql.connector.read.streaming.Offset reportLatestOffset() {
    String found = (String) python.apply("head", null);
    return found == null ? null : new TextOffset(found);
  }

  public void prepareForTriggerAvailableNow() {
    python.apply("prepare", null);
  }

  public java.util.Map metrics(Optional latest) {
    org.apache.spark.sql.connector.read.streaming.Offset offset =
        (org.apache.spark.sql.connector.read.streaming.Offset) latest.orElse(null);
    String[] found = ((String) python.apply("metrics", offset == null ? null : offset.json())).split("\0");
    HashMap metrics = new HashMap();
    for (int i = 0; i + 1 < found.length; i += 2) metrics.put(found[i], found[i + 1]);
    return metrics;
  }

  public String toString() {
    return name;
  }
}

class TableSink implements Sink {
  private final BiFunction python;
  private final String name;

  TableSink(BiFunction python, String name) {
    this.python = python;
    this.name = name;
  }

  public void addBatch(long number, Dataset data) {
    org.apache.spark.sql.classic.Dataset batch = (org.apache.spark.sql.classic.Dataset) data;
    String query = batch.sparkSession().sparkContext().getLocalProperty("sql.streaming.queryId");
    python.apply(number + "\0" + query + "\0" + batch.sparkSession().sessionUUID(), batch);
  }

  public String name() {
    return name;
  }

  public String toString() {
    return name;
  }
}
