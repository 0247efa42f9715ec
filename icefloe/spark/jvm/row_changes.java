// Where rows are that a statement changes: gathered by tasks as bitmaps, or while the changed rows are written.
//
// The places of rows are, for each file and each upper half of positions, a portable roaring bitmap of the lower halves.
package PACKAGE;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import org.roaringbitmap.RoaringBitmap;
import scala.collection.immutable.Map;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;
import scala.runtime.AbstractFunction0;
import scala.runtime.AbstractFunction1;

/** What Python calls. */
public class Entry {
  /** Where the rows of a frame are, of which the columns are file, position, and whether the row is chosen; for each task. */
  public byte[] gathered(Dataset frame) throws IOException {
    // Tasks have the classes of the frame's session: the thread may be one of another session, such as that of a stream.
    Object[] parts = (Object[]) frame.sparkSession().artifactManager().withResources(new Gathering(frame));
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    for (int i = 0; i < parts.length; i++) all.write((byte[]) parts[i]);
    return all.toByteArray();
  }

  /** A format whose writer takes the last two columns, file and position, for the place where a row was. */
  public ParquetFileFormat placing() {
    return new PlacingFormat();
  }
}

class Gathering extends AbstractFunction0 {
  private final Dataset frame;

  Gathering(Dataset frame) {
    this.frame = frame;
  }

  public Object apply() {
    ClassTag bytes = scala.reflect.ClassTag$.MODULE$.apply(byte[].class);
    RDD rows = frame.queryExecution().toRdd();
    return rows.mapPartitions(new Gather(), false, bytes).collect();
  }
}

/** Rows by file, position, and whether they are chosen. */
class Places {
  static final int OTHERS = 0;
  static final int CHOSEN = 1;
  static final int REPEATED = 2;

  private final HashMap files = new HashMap();
  private UTF8String file;
  private HashMap ofFile;
  private int kind = -1;
  private int high;
  private RoaringBitmap current;
  private RoaringBitmap opposite;

  void add(UTF8String rowFile, long position, boolean isChosen) {
    int rowHigh = (int) (position >>> 32);
    int rowKind = isChosen ? CHOSEN : OTHERS;
    if (file == null || rowKind != kind || rowHigh != high || !rowFile.equals(file)) turn(rowFile, rowKind, rowHigh);
    int low = (int) position;
    if (!current.checkedAdd(low) || (opposite != null && opposite.contains(low))) bitmap(REPEATED).add(low);
  }

  private void turn(UTF8String rowFile, int rowKind, int rowHigh) {
    if (!rowFile.equals(file)) {
      ofFile = (HashMap) files.get(rowFile);
      // Spark uses the bytes of the row again.
      file = rowFile.copy();
      if (ofFile == null) {
        ofFile = new HashMap();
        files.put(file, ofFile);
      }
    }
    kind = rowKind;
    high = rowHigh;
    current = bitmap(kind);
    opposite = (RoaringBitmap) ofFile.get(key(1 - kind));
  }

  private Long key(int ofKind) {
    return Long.valueOf((long) high << 2 | ofKind);
  }

  private RoaringBitmap bitmap(int ofKind) {
    RoaringBitmap bitmap = (RoaringBitmap) ofFile.get(key(ofKind));
    if (bitmap == null) {
      bitmap = new RoaringBitmap();
      ofFile.put(key(ofKind), bitmap);
    }
    return bitmap;
  }

  byte[] toBytes() throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream out = new DataOutputStream(bytes);
    for (Iterator all = files.entrySet().iterator(); all.hasNext(); ) {
      java.util.Map.Entry ofOne = (java.util.Map.Entry) all.next();
      byte[] name = ((UTF8String) ofOne.getKey()).getBytes();
      for (Iterator lists = ((HashMap) ofOne.getValue()).entrySet().iterator(); lists.hasNext(); ) {
        java.util.Map.Entry list = (java.util.Map.Entry) lists.next();
        RoaringBitmap rows = (RoaringBitmap) list.getValue();
        rows.runOptimize();
        out.writeInt(name.length);
        out.write(name);
        out.writeLong(((Long) list.getKey()).longValue());
        out.writeInt(rows.serializedSizeInBytes());
        rows.serialize(out);
      }
    }
    // An empty name ends what one task says.
    out.writeInt(0);
    return bytes.toByteArray();
  }
}

/** From the rows of a task to their places. */
class Gather extends AbstractFunction1 implements Serializable {
  public Object apply(Object rows) {
    scala.collection.Iterator all = (scala.collection.Iterator) rows;
    Places places = new Places();
    while (all.hasNext()) {
      InternalRow row = (InternalRow) all.next();
      places.add(row.getUTF8String(0), row.getLong(1), row.getBoolean(2));
    }
    try {
      return new One(places.toBytes());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}

/** An iterator over one value. */
class One implements scala.collection.Iterator {
  private Object value;

  One(Object value) {
    this.value = value;
  }

  public boolean hasNext() {
    return value != null;
  }

  public Object next() {
    Object only = value;
    value = null;
    return only;
  }
}

/** Spark's Parquet format, with a writer that keeps the places of rows in a file beside each file of rows. */
class PlacingFormat extends ParquetFileFormat {
  public OutputWriterFactory prepareWrite(SparkSession session, Job job, Map options, StructType schema) {
    return new PlacingFactory(super.prepareWrite(session, job, options, schema));
  }
}

class PlacingFactory extends OutputWriterFactory {
  private final OutputWriterFactory parquet;

  PlacingFactory(OutputWriterFactory parquet) {
    this.parquet = parquet;
  }

  public String getFileExtension(TaskAttemptContext context) {
    return parquet.getFileExtension(context);
  }

  public OutputWriter newInstance(String path, StructType schema, TaskAttemptContext context) {
    StructType stored = new StructType((StructField[]) Arrays.copyOf(schema.fields(), schema.length() - 2));
    ArrayList columns = new ArrayList();
    for (int i = 0; i < stored.length(); i++) {
      columns.add(new BoundReference(i, stored.fields()[i].dataType(), stored.fields()[i].nullable()));
    }
    UnsafeProjection projection = UnsafeProjection.create(CollectionConverters.asScala(columns).toSeq());
    return new PlacingWriter(parquet.newInstance(path, stored, context), projection, context);
  }
}

/** The committer of the write shows both files or none, whatever becomes of the task. */
class PlacingWriter extends OutputWriter {
  private final OutputWriter parquet;
  private final UnsafeProjection stored;
  private final TaskAttemptContext context;
  private final Places places = new Places();

  PlacingWriter(OutputWriter parquet, UnsafeProjection stored, TaskAttemptContext context) {
    this.parquet = parquet;
    this.stored = stored;
    this.context = context;
  }

  public String path() {
    return parquet.path();
  }

  public void write(InternalRow row) {
    int width = row.numFields();
    places.add(row.getUTF8String(width - 2), row.getLong(width - 1), true);
    parquet.write(stored.apply(row));
  }

  public void close() {
    parquet.close();
    Path rows = new Path(parquet.path());
    Path beside = new Path(rows.getParent(), "_places-" + rows.getName());
    try {
      OutputStream out = beside.getFileSystem(context.getConfiguration()).create(beside, false);
      try {
        out.write(places.toBytes());
      } finally {
        out.close();
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
