// A file for each partition that a task has rows of, all open at once, where a table has few partitions.
//
// Spark's own writer makes the values of a row's partition for each row, compares them with those of the row before, and copies
// the other columns. Here the values are numbers whose range is known, which choose the file, and the writer of the
// file sees the row without them.
package PACKAGE;

import java.util.ArrayList;
import java.util.Arrays;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Map;
import scala.jdk.javaapi.CollectionConverters;

/** What Python calls. */
public class Entry {
  public Entry() {
    ExternalCatalogUtils.getPartitionPathString("p0", "0");
  }

  /**
   * A format whose writer takes the last columns for the partition of a row. `counts` says for each of them how many values there are:
   * it is null, or an int from zero on. Files have `mostRows` at most, or any number if that is zero.
   */
  public ParquetFileFormat byPartition(String counts, long mostRows) {
    String[] texts = counts.split(" ");
    int[] numbers = new int[texts.length];
    for (int i = 0; i < texts.length; i++) numbers[i] = Integer.parseInt(texts[i]);
    return new PartitionFormat(numbers, mostRows);
  }
}

class PartitionFormat extends ParquetFileFormat {
  private final int[] counts;
  private final long mostRows;

  PartitionFormat(int[] counts, long mostRows) {
    this.counts = counts;
    this.mostRows = mostRows;
  }

  public OutputWriterFactory prepareWrite(SparkSession session, Job job, Map options, StructType schema) {
    return new PartitionFactory(super.prepareWrite(session, job, options, schema), counts, mostRows);
  }
}

class PartitionFactory extends OutputWriterFactory {
  private final OutputWriterFactory parquet;
  private final int[] counts;
  private final long mostRows;

  PartitionFactory(OutputWriterFactory parquet, int[] counts, long mostRows) {
    this.parquet = parquet;
    this.counts = counts;
    this.mostRows = mostRows;
  }

  public String getFileExtension(TaskAttemptContext context) {
    return parquet.getFileExtension(context);
  }

  public OutputWriter newInstance(String path, StructType schema, TaskAttemptContext context) {
    return new PartitionWriter(path, schema, context, parquet, counts, mostRows);
  }
}

/** The files lie in folders beside the one that Spark's committer has given to the task, and go where that goes. */
class PartitionWriter extends OutputWriter {
  private static final int BITS_A_WORD = 64;
  private final Path path;
  /** Spark asks for it with each row. */
  private final String pathText;
  private final TaskAttemptContext context;
  private final OutputWriterFactory parquet;
  private final int[] counts;
  private final long mostRows;
  private final StructType stored;
  private final String[] names;
  private final UnsafeProjection projection;
  private final UnsafeRow view;
  private final OutputWriter[] open;
  private final long[] rows;
  private final int[] files;

  PartitionWriter(
      String path, StructType schema, TaskAttemptContext context, OutputWriterFactory parquet, int[] counts, long mostRows) {
    this.path = new Path(path);
    pathText = path;
    this.context = context;
    this.parquet = parquet;
    this.counts = counts;
    this.mostRows = mostRows;
    int width = schema.length() - counts.length;
    stored = new StructType((StructField[]) Arrays.copyOf(schema.fields(), width));
    names = (String[]) Arrays.copyOfRange(schema.fieldNames(), width, schema.length());
    projection = UnsafeProjection.create(columns(stored));
    // Fields lie behind the bits that say which are null; a word of these has room for 64.
    boolean isAlike = (width + BITS_A_WORD - 1) / BITS_A_WORD == (schema.length() + BITS_A_WORD - 1) / BITS_A_WORD;
    view = isAlike ? new UnsafeRow(width) : null;
    int partitions = 1;
    for (int i = 0; i < counts.length; i++) partitions *= counts[i] + 1;
    open = new OutputWriter[partitions];
    rows = new long[partitions];
    files = new int[partitions];
  }

  private static scala.collection.immutable.Seq columns(StructType stored) {
    ArrayList columns = new ArrayList();
    for (int i = 0; i < stored.length(); i++) {
      columns.add(new BoundReference(i, stored.fields()[i].dataType(), stored.fields()[i].nullable()));
    }
    return CollectionConverters.asScala(columns).toSeq();
  }

  public String path() {
    return pathText;
  }

  public void write(InternalRow row) {
    int partition = 0;
    int first = row.numFields() - counts.length;
    for (int i = 0; i < counts.length; i++) {
      int value = row.isNullAt(first + i) ? counts[i] : row.getInt(first + i);
      if (value < 0 || value > counts[i]) {
        throw new IllegalStateException("partition value " + value + " is not one of " + counts[i]);
      }
      partition = partition * (counts[i] + 1) + value;
    }
    OutputWriter file = open[partition];
    if (file == null) {
      file = opened(row, first, partition);
      open[partition] = file;
    }
    file.write(storedPart(row));
    if (++rows[partition] == mostRows) {
      open[partition] = null;
      rows[partition] = 0;
      file.close();
    }
  }

  private InternalRow storedPart(InternalRow row) {
    if (view == null || !(row instanceof UnsafeRow)) return projection.apply(row);
    UnsafeRow whole = (UnsafeRow) row;
    view.pointTo(whole.getBaseObject(), whole.getBaseOffset(), whole.getSizeInBytes());
    return view;
  }

  private OutputWriter opened(InternalRow row, int first, int partition) {
    Path folder = path.getParent();
    for (int i = 0; i < counts.length; i++) {
      String value = row.isNullAt(first + i) ? null : Integer.toString(row.getInt(first + i));
      folder = new Path(folder, ExternalCatalogUtils.getPartitionPathString(names[i], value));
    }
    int number = files[partition]++;
    String name = number == 0 ? path.getName() : number + "-" + path.getName();
    return parquet.newInstance(new Path(folder, name).toString(), stored, context);
  }

  /** All files are closed, also if that fails for one of them. */
  public void close() {
    RuntimeException problem = null;
    for (int i = 0; i < open.length; i++) {
      OutputWriter file = open[i];
      open[i] = null;
      try {
        if (file != null) file.close();
      } catch (RuntimeException e) {
        if (problem == null) problem = e;
        else problem.addSuppressed(e);
      }
    }
    if (problem != null) throw problem;
  }
}
