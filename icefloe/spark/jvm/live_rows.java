// Spark's Parquet format for files of which some rows are deleted: only the others come out.
//
// Its reader replaces the generator of row positions in Spark's vectorized reader by one that keeps, for each batch, which rows
// are live, and moves them to the front of the batch's own columns; nested columns are mapped through them instead. So the code
// that Spark generates for a query is that of plain Parquet, and Java's compiler makes the same of it. Positions are exact where
// row groups and pages are skipped, as Spark's reader announces the row ranges that it reads. The deleted rows come with the file,
// as a portable 32-bit roaring bitmap. So does the key of an encrypted file, which Parquet's library asks a class of ours for.
package PACKAGE;

import java.io.Closeable;
import java.io.IOException;
import java.io.Serializable;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.NoSuchElementException;
import java.util.PrimitiveIterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.parquet.crypto.DecryptionPropertiesFactory;
import org.apache.parquet.crypto.FileDecryptionProperties;
import org.apache.parquet.crypto.ParquetCryptoRuntimeException;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.RecordReaderIterator;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.execution.datasources.parquet.ParquetRowIndexUtil;
import org.apache.spark.sql.execution.datasources.parquet.ParquetUtils;
import org.apache.spark.sql.execution.datasources.parquet.VectorizedParquetRecordReader;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;
import org.roaringbitmap.BitSetUtil;
import org.roaringbitmap.RoaringBitmap;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/** What Python calls. */
public class Entry {
  public Entry() throws NoSuchFieldException {
    // The two private fields of Spark that all of this relies on: known to be there before a task needs them.
    SparkReader.wrapped();
    SparkReader.generator();
  }

  /** The format of files with deleted rows, all of which are encrypted or none. */
  public ParquetFileFormat format(boolean isEncrypted) {
    return new LiveRowsFormat(isEncrypted);
  }
}

/** The private parts of Spark's reader. */
class SparkReader {
  static Field wrapped() throws NoSuchFieldException {
    Field field = RecordReaderIterator.class.getDeclaredField("rowReader");
    field.setAccessible(true);
    return field;
  }

  static Field generator() throws NoSuchFieldException {
    Field field = VectorizedParquetRecordReader.class.getDeclaredField("rowIndexGenerator");
    field.setAccessible(true);
    return field;
  }
}

/** The format. It equals itself in other plans, so that Spark can reuse exchanges and caches. */
class LiveRowsFormat extends ParquetFileFormat {
  /** Under which name scan_index.java gives the deleted rows of a file. */
  static final String DELETED = "icefloe.deleted";
  static final String POSITION = ParquetFileFormat.ROW_INDEX_TEMPORARY_COLUMN_NAME();

  private final boolean isEncrypted;

  LiveRowsFormat(boolean isEncrypted) {
    this.isEncrypted = isEncrypted;
  }

  public Function1 buildReaderWithPartitionValues(
      SparkSession session, StructType data, StructType constants, StructType required, Seq filters, Map options, Configuration conf) {
    boolean inBatches = options.get("returning_batch").contains("true");
    int position = ParquetRowIndexUtil.findRowIndexColumnIndexInSchema(required);
    // The question that Spark's reader asks, to decide whether it reads vectors.
    if (inBatches || ParquetUtils.isBatchReadSupportedForSchema(session.sessionState().conf(), all(constants, required))) {
      // The reader creates a generator of positions for itself only where a column asks for them; ours is given to it anyway.
      Function1 reader = spark(session, data, constants, required, filters, options, conf);
      return new LiveVectors(reader, position, inBatches);
    }
    StructType read = position >= 0 ? required : required.add(POSITION, DataTypes.LongType);
    Function1 reader = spark(session, data, constants, read, filters, options, conf);
    return new LiveRecords(reader, read, constants, position >= 0);
  }

  /** Spark's reader of all rows. */
  private Function1 spark(
      SparkSession session, StructType data, StructType constants, StructType required, Seq filters, Map options, Configuration conf) {
    // The configuration is that of this relation alone.
    if (isEncrypted) FileKeys.announce(conf);
    Function1 reader = super.buildReaderWithPartitionValues(session, data, constants, required, filters, options, conf);
    return isEncrypted ? new KeyedFiles(reader) : reader;
  }

  private static StructType all(StructType constants, StructType required) {
    StructType all = constants;
    for (int i = 0; i < required.length(); i++) all = all.add(required.fields()[i]);
    return all;
  }

  /** Those of Spark's reader, but for columns that come through a mapping. */
  public Option vectorTypes(StructType required, StructType constants, SQLConf conf) {
    ArrayList names = new ArrayList(CollectionConverters.asJava((Seq) super.vectorTypes(required, constants, conf).get()));
    for (int i = 0; i < required.length(); i++) {
      if (!Live.isMoved(required.fields()[i].dataType())) names.set(i, ColumnVector.class.getName());
    }
    return Option.apply(CollectionConverters.asScala(names).toSeq());
  }

  public boolean equals(Object other) {
    return other != null && other.getClass() == getClass() && ((LiveRowsFormat) other).isEncrypted == isEncrypted;
  }

  public int hashCode() {
    return getClass().hashCode();
  }

  public String toString() {
    return "Parquet";
  }

  /** The deleted rows of a file. */
  static BitSet deleted(PartitionedFile file) throws IOException {
    Option bytes = file.otherConstantMetadataColumnValues().get(DELETED);
    if (bytes.isEmpty()) return new BitSet();
    RoaringBitmap rows = new RoaringBitmap();
    rows.deserialize(ByteBuffer.wrap((byte[]) bytes.get()));
    return BitSetUtil.bitsetOf(rows);
  }
}

/** Encrypted files: while Spark's reader opens one, which it does before it gives the first row, its key is at hand. */
class KeyedFiles extends AbstractFunction1 implements Serializable {
  private final Function1 reader;

  KeyedFiles(Function1 reader) {
    this.reader = reader;
  }

  public Object apply(Object file) {
    Option key = ((PartitionedFile) file).otherConstantMetadataColumnValues().get(FileKeys.KEY);
    if (key.isDefined()) FileKeys.CURRENT.set(key.get());
    try {
      return reader.apply(file);
    } finally {
      FileKeys.CURRENT.remove();
    }
  }
}

/** What Parquet's library asks for the key of a file. A file in clear is refused by it then. */
public class FileKeys implements DecryptionPropertiesFactory {
  /** Under which name scan_index.java gives the key of a file: one byte with its length, the key, and the prefix of additional data. */
  static final String KEY = "icefloe.key";
  static final ThreadLocal CURRENT = new ThreadLocal();

  public FileKeys() {}

  /** Have the library ask this class. */
  static void announce(Configuration conf) {
    conf.set(DecryptionPropertiesFactory.CRYPTO_FACTORY_CLASS_PROPERTY_NAME, FileKeys.class.getName());
    conf.setClassLoader(new TaskClasses(conf.getClassLoader()));
  }

  public FileDecryptionProperties getFileDecryptionProperties(Configuration conf, Path path) {
    byte[] key = (byte[]) CURRENT.get();
    if (key == null) throw new ParquetCryptoRuntimeException("no key is known for " + path);
    FileDecryptionProperties.Builder known = FileDecryptionProperties.builder().withFooterKey(Arrays.copyOfRange(key, 1, 1 + key[0]));
    byte[] prefix = Arrays.copyOfRange(key, 1 + key[0], key.length);
    return (prefix.length == 0 ? known : known.withAADPrefix(prefix)).build();
  }
}

/** Finds classes where the running task does. In a task of the driver's own JVM the configuration is older than our jar. */
class TaskClasses extends ClassLoader {
  TaskClasses(ClassLoader parent) {
    super(parent);
  }

  protected Class findClass(String name) throws ClassNotFoundException {
    return Thread.currentThread().getContextClassLoader().loadClass(name);
  }
}

/** From a file to its live rows, by Spark's vectorized reader: in batches, or one by one. */
class LiveVectors extends AbstractFunction1 implements Serializable {
  private final Function1 reader;
  private final int position;
  private final boolean inBatches;

  LiveVectors(Function1 reader, int position, boolean inBatches) {
    this.reader = reader;
    this.position = position;
    this.inBatches = inBatches;
  }

  public Object apply(Object file) {
    RecordReaderIterator batches = (RecordReaderIterator) reader.apply(file);
    try {
      BitSet deleted = LiveRowsFormat.deleted((PartitionedFile) file);
      if (deleted.isEmpty() && position < 0) return batches;
      LivePositions live = new LivePositions(position, deleted);
      VectorizedParquetRecordReader vectors = (VectorizedParquetRecordReader) SparkReader.wrapped().get(batches);
      SparkReader.generator().set(vectors, live);
      if (!inBatches) vectors.enableReturningBatches();
      LiveBatches mapped = new LiveBatches(batches, live, ((PartitionedFile) file).partitionValues().numFields());
      return inBatches ? (Object) mapped : (Object) new RowsOfBatches(mapped);
    } catch (Exception e) {
      batches.close();
      throw new IllegalStateException(
          "the deleted rows of " + ((PartitionedFile) file).filePath() + " cannot be left out; set spark.icefloe.jvm.enabled to false", e);
    }
  }
}

/** Spark's reader asks it for the positions of each batch, and that is where the deleted rows are left out. */
class LivePositions extends ParquetRowIndexUtil.RowIndexGenerator {
  /** Which rows of the batch are live, and how many. */
  int[] rows = new int[0];
  int count;
  /** How many rows the batch has. */
  int size;

  private final boolean isColumn;
  private final BitSet deleted;
  /** The position of the next row, or of the first of the row group if some of its pages are skipped. */
  private long next;
  private PrimitiveIterator.OfLong some;

  LivePositions(int column, BitSet deleted) {
    super(column);
    this.isColumn = column >= 0;
    this.deleted = deleted;
  }

  public void initFromPageReadStore(PageReadStore pages) {
    super.initFromPageReadStore(pages);
    next = ((Long) pages.getRowIndexOffset().get()).longValue();
    some = (PrimitiveIterator.OfLong) pages.getRowIndexes().orElse(null);
  }

  /** For each batch. (The type of the first argument has no public name.) */
  public void populateRowIndex(org.apache.spark.sql.execution.datasources.parquet.ParquetColumnVector[] columns, int batchSize) {
    if (rows.length < batchSize) rows = new int[batchSize];
    if (isColumn) {
      super.populateRowIndex(columns, batchSize);
    } else {
      choose(null, batchSize);
    }
  }

  /** The same with the column to fill. */
  public void populateRowIndex(WritableColumnVector column, int batchSize) {
    choose(column, batchSize);
  }

  private void choose(WritableColumnVector column, int batchSize) {
    int[] kept = rows;
    int live = 0;
    if (some == null) {
      int first = (int) next;
      int gone = deleted.nextSetBit(first);
      if (gone < 0 || gone >= first + batchSize) {
        live = batchSize;
      } else {
        for (int row = 0; row < batchSize; row++) {
          int end = gone < 0 ? batchSize : Math.min(batchSize, gone - first);
          while (row < end) kept[live++] = row++;
          gone = deleted.nextSetBit(first + row + 1);
        }
      }
      if (column != null) {
        for (int row = 0; row < batchSize; row++) column.putLong(row, next + row);
      }
      next += batchSize;
    } else {
      for (int row = 0; row < batchSize; row++) {
        long place = next + some.nextLong();
        if (!deleted.get((int) place)) kept[live++] = row;
        if (column != null) column.putLong(row, place);
      }
    }
    count = live;
    size = batchSize;
  }
}

/** The batches of Spark's reader, with live rows only. */
class LiveBatches implements scala.collection.Iterator, Closeable {
  private final RecordReaderIterator batches;
  private final LivePositions live;
  private final int constants;
  private ColumnarBatch real;
  private int[] rows;
  private ColumnarBatch mapped;

  LiveBatches(RecordReaderIterator batches, LivePositions live, int constants) {
    this.batches = batches;
    this.live = live;
    this.constants = constants;
  }

  public boolean hasNext() {
    return batches.hasNext();
  }

  public Object next() {
    ColumnarBatch batch = (ColumnarBatch) batches.next();
    if (live.count == live.size) return batch;
    if (batch != real || rows != live.rows) {
      real = batch;
      rows = live.rows;
      mapped = mapped(batch);
    }
    int first = 0;
    while (first < live.count && rows[first] == first) first++;
    for (int i = 0; i < batch.numCols() - constants; i++) {
      if (mapped.column(i) == batch.column(i)) Live.move((WritableColumnVector) batch.column(i), rows, first, live.count);
    }
    mapped.setNumRows(live.count);
    return mapped;
  }

  private ColumnarBatch mapped(ColumnarBatch batch) {
    ColumnVector[] columns = new ColumnVector[batch.numCols()];
    for (int i = 0; i < columns.length; i++) {
      ColumnVector column = batch.column(i);
      columns[i] = i >= columns.length - constants || Live.isMoved(column.dataType()) ? column : new MappedVector(column, rows);
    }
    return new ColumnarBatch(columns);
  }

  public void close() {
    batches.close();
  }
}

/** Moves the live rows of a column to its front. Spark's reader fills the column anew for its next batch. */
class Live {
  /** Whether rows of a type are moved: those whose value is in one place of the column. */
  static boolean isMoved(DataType type) {
    if (type instanceof DecimalType) return ((DecimalType) type).precision() <= Decimal.MAX_LONG_DIGITS();
    return type instanceof LongType || type instanceof IntegerType || type instanceof DoubleType || type instanceof FloatType
        || type instanceof StringType || type instanceof BinaryType || type instanceof DateType || type instanceof TimestampType
        || type instanceof TimestampNTZType || type instanceof BooleanType || type instanceof ShortType || type instanceof ByteType;
  }

  /** Row `rows[i]` becomes row `i`, for all from the first one that moves. */
  static void move(WritableColumnVector column, int[] rows, int first, int count) {
    if (column.hasNull()) nulls(column, rows, first, count);
    DataType type = column.dataType();
    if (column.hasDictionary()) {
      ints(column.getDictionaryIds(), rows, first, count);
    } else if (type instanceof StringType || type instanceof BinaryType) {
      texts(column, rows, first, count);
    } else if (type instanceof IntegerType || type instanceof DateType || isShort(type)) {
      ints(column, rows, first, count);
    } else if (type instanceof DoubleType) {
      doubles(column, rows, first, count);
    } else if (type instanceof FloatType) {
      floats(column, rows, first, count);
    } else if (type instanceof BooleanType) {
      booleans(column, rows, first, count);
    } else if (type instanceof ShortType) {
      shorts(column, rows, first, count);
    } else if (type instanceof ByteType) {
      bytes(column, rows, first, count);
    } else {
      longs(column, rows, first, count);
    }
  }

  private static boolean isShort(DataType type) {
    return type instanceof DecimalType && ((DecimalType) type).precision() <= Decimal.MAX_INT_DIGITS();
  }

  /** Only where it changes something, since a column counts its nulls as they are put, and constant ones are never emptied. */
  private static void nulls(WritableColumnVector column, int[] rows, int first, int count) {
    for (int i = first; i < count; i++) {
      boolean isNull = column.isNullAt(rows[i]);
      if (isNull == column.isNullAt(i)) continue;
      if (isNull) column.putNull(i);
      else column.putNotNull(i);
    }
  }

  private static void longs(WritableColumnVector column, int[] rows, int first, int count) {
    for (int i = first; i < count; i++) column.putLong(i, column.getLong(rows[i]));
  }

  private static void ints(WritableColumnVector column, int[] rows, int first, int count) {
    for (int i = first; i < count; i++) column.putInt(i, column.getInt(rows[i]));
  }

  private static void doubles(WritableColumnVector column, int[] rows, int first, int count) {
    for (int i = first; i < count; i++) column.putDouble(i, column.getDouble(rows[i]));
  }

  private static void floats(WritableColumnVector column, int[] rows, int first, int count) {
    for (int i = first; i < count; i++) column.putFloat(i, column.getFloat(rows[i]));
  }

  private static void booleans(WritableColumnVector column, int[] rows, int first, int count) {
    for (int i = first; i < count; i++) column.putBoolean(i, column.getBoolean(rows[i]));
  }

  private static void shorts(WritableColumnVector column, int[] rows, int first, int count) {
    for (int i = first; i < count; i++) column.putShort(i, column.getShort(rows[i]));
  }

  private static void bytes(WritableColumnVector column, int[] rows, int first, int count) {
    for (int i = first; i < count; i++) column.putByte(i, column.getByte(rows[i]));
  }

  /** Texts stay where they are; a row has their place. */
  private static void texts(WritableColumnVector column, int[] rows, int first, int count) {
    for (int i = first; i < count; i++) column.putArray(i, column.getArrayOffset(rows[i]), column.getArrayLength(rows[i]));
  }
}

/** The rows of batches, for plans that take one at a time. */
class RowsOfBatches implements scala.collection.Iterator, Closeable {
  private final LiveBatches batches;
  private ColumnarBatch batch;
  private int row;

  RowsOfBatches(LiveBatches batches) {
    this.batches = batches;
  }

  public boolean hasNext() {
    while (batch == null || row >= batch.numRows()) {
      if (!batches.hasNext()) return false;
      batch = (ColumnarBatch) batches.next();
      row = 0;
    }
    return true;
  }

  public Object next() {
    if (!hasNext()) throw new NoSuchElementException();
    return batch.getRow(row++);
  }

  public void close() {
    batches.close();
  }
}

/** A column of which some rows are left out. It belongs to Spark's reader, which closes it. */
class MappedVector extends ColumnVector {
  private final ColumnVector real;
  private final int[] rows;
  private final ColumnVector[] children;

  MappedVector(ColumnVector real, int[] rows) {
    super(real.dataType());
    this.real = real;
    this.rows = rows;
    // Intervals have three parts, variants two.
    this.children = new ColumnVector[real.dataType() instanceof StructType ? ((StructType) real.dataType()).length() : 3];
  }

  public void close() {}
  public void closeIfFreeable() {}
  public boolean hasNull() { return real.hasNull(); }
  public int numNulls() { return real.numNulls(); }
  public boolean isNullAt(int row) { return real.isNullAt(rows[row]); }
  public boolean getBoolean(int row) { return real.getBoolean(rows[row]); }
  public byte getByte(int row) { return real.getByte(rows[row]); }
  public short getShort(int row) { return real.getShort(rows[row]); }
  public int getInt(int row) { return real.getInt(rows[row]); }
  public long getLong(int row) { return real.getLong(rows[row]); }
  public float getFloat(int row) { return real.getFloat(rows[row]); }
  public double getDouble(int row) { return real.getDouble(rows[row]); }
  public ColumnarArray getArray(int row) { return real.getArray(rows[row]); }
  public ColumnarMap getMap(int row) { return real.getMap(rows[row]); }
  public Decimal getDecimal(int row, int precision, int scale) { return real.getDecimal(rows[row], precision, scale); }
  public UTF8String getUTF8String(int row) { return real.getUTF8String(rows[row]); }
  public byte[] getBinary(int row) { return real.getBinary(rows[row]); }

  /** Of structs, variants and intervals, whose parts are at the same row. */
  public ColumnVector getChild(int index) {
    if (children[index] == null) children[index] = new MappedVector(real.getChild(index), rows);
    return children[index];
  }
}

/** From a file to its live rows, by Spark's reader of records, which gives their positions as a column. */
class LiveRecords extends AbstractFunction1 implements Serializable {
  private final Function1 reader;
  private final StructType read;
  private final StructType constants;
  private final boolean keepsPosition;

  LiveRecords(Function1 reader, StructType read, StructType constants, boolean keepsPosition) {
    this.reader = reader;
    this.read = read;
    this.constants = constants;
    this.keepsPosition = keepsPosition;
  }

  public Object apply(Object file) {
    try {
      BitSet deleted = LiveRowsFormat.deleted((PartitionedFile) file);
      int position = read.fieldIndex(LiveRowsFormat.POSITION);
      UnsafeProjection kept = keepsPosition ? null : without(position);
      return new LiveRecordIterator((scala.collection.Iterator) reader.apply(file), deleted, position, kept);
    } catch (IOException e) {
      throw new IllegalStateException("the deleted rows of " + ((PartitionedFile) file).filePath() + " cannot be read", e);
    }
  }

  private UnsafeProjection without(int position) {
    ArrayList kept = new ArrayList();
    for (int i = 0; i < read.length() + constants.length(); i++) {
      StructField field = i < read.length() ? read.fields()[i] : constants.fields()[i - read.length()];
      if (i != position) kept.add(new BoundReference(i, field.dataType(), field.nullable()));
    }
    return UnsafeProjection.create(CollectionConverters.asScala(kept).toSeq());
  }
}

/** Rows but for the deleted ones. */
class LiveRecordIterator implements scala.collection.Iterator, Closeable {
  private final scala.collection.Iterator rows;
  private final BitSet deleted;
  private final int position;
  private final UnsafeProjection kept;
  private InternalRow live;

  LiveRecordIterator(scala.collection.Iterator rows, BitSet deleted, int position, UnsafeProjection kept) {
    this.rows = rows;
    this.deleted = deleted;
    this.position = position;
    this.kept = kept;
  }

  public boolean hasNext() {
    while (live == null && rows.hasNext()) {
      InternalRow row = (InternalRow) rows.next();
      if (!deleted.get((int) row.getLong(position))) live = row;
    }
    return live != null;
  }

  public Object next() {
    if (!hasNext()) throw new NoSuchElementException();
    InternalRow row = live;
    live = null;
    return kept == null ? row : kept.apply(row);
  }

  public void close() {
    try {
      if (rows instanceof Closeable) ((Closeable) rows).close();
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }
}
