// Geometries in the files of Spark's Parquet writer: checked as they are written, with the type of their column, and with boxes.
//
// Parquet's library makes boxes with JTS, which fails at some shapes and leaves out those that begin with NaN. So it is given
// boxes that are made here, while the bytes are checked: by the same rules as in icefloe/schema/wkb.py and geo_boxes.py.
package PACKAGE;

import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapreduce.Job;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.column.statistics.geospatial.BoundingBox;
import org.apache.parquet.column.statistics.geospatial.GeospatialStatistics;
import org.apache.parquet.column.statistics.geospatial.GeospatialTypes;
import org.apache.parquet.hadoop.api.WriteSupport;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.io.api.RecordConsumer;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.Type;
import org.apache.parquet.schema.Types;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.execution.datasources.parquet.ParquetWriteSupport;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Map;

/** What Python calls. */
public class Entry {
  public Entry() {
    Fields.find();
  }

  /** A format that writes columns of bytes as geometries: for each its id, how errors call it, and its CRS; none is the default. */
  public ParquetFileFormat shapes(ParquetFileFormat inner, String columns, String ewkbHint) {
    return new ShapesFormat(inner, columns, ewkbHint);
  }
}

class ShapesFormat extends ParquetFileFormat {
  private final ParquetFileFormat inner;
  private final String columns;
  private final String ewkbHint;

  ShapesFormat(ParquetFileFormat inner, String columns, String ewkbHint) {
    this.inner = inner;
    this.columns = columns;
    this.ewkbHint = ewkbHint;
  }

  public OutputWriterFactory prepareWrite(SparkSession session, Job job, Map options, StructType schema) {
    OutputWriterFactory factory = inner.prepareWrite(session, job, options, schema);
    Configuration configuration = job.getConfiguration();
    configuration.set("parquet.write.support.class", ShapesSupport.class.getName());
    configuration.set(ShapesSupport.COLUMNS, columns);
    configuration.set(ShapesSupport.EWKB_HINT, ewkbHint);
    return factory;
  }
}

/** Spark's own, with the types of geometries, and something that looks at each of their values. */
public class ShapesSupport extends ParquetWriteSupport {
  static final String COLUMNS = "icefloe.shapes";
  static final String EWKB_HINT = "icefloe.ewkb-hint";

  private final HashMap names = new HashMap();
  private final HashMap systems = new HashMap();
  private String ewkbHint;
  private MessageType schema;
  private Slot[] slots;
  private long rows;

  public ShapesSupport() {}

  public WriteSupport.WriteContext init(Configuration configuration) {
    WriteSupport.WriteContext context = super.init(configuration);
    ewkbHint = configuration.getRaw(EWKB_HINT);
    String[] columns = configuration.getRaw(COLUMNS).split(",");
    for (int i = 0; i < columns.length; i++) {
      String[] parts = columns[i].split(":", -1);
      names.put(Integer.valueOf(parts[0]), decoded(parts[1]));
      systems.put(Integer.valueOf(parts[0]), decoded(parts[2]));
    }
    schema = new MessageType(context.getSchema().getName(), typed(context.getSchema()));
    HashMap about = new HashMap(context.getExtraMetaData());
    // Spark would take the columns for bytes by it, and sees by their types what they are.
    about.remove("org.apache.spark.sql.parquet.row.metadata");
    return new WriteSupport.WriteContext(schema, about);
  }

  private static String decoded(String text) {
    return new String(Base64.getDecoder().decode(text), StandardCharsets.UTF_8);
  }

  private List typed(GroupType group) {
    ArrayList fields = new ArrayList();
    for (int i = 0; i < group.getFieldCount(); i++) {
      Type field = group.getType(i);
      Integer id = field.getId() == null ? null : Integer.valueOf(field.getId().intValue());
      if (!field.isPrimitive()) {
        fields.add(field.asGroupType().withNewFields(typed(field.asGroupType())));
      } else if (systems.containsKey(id)) {
        Types.PrimitiveBuilder builder = Types.primitive(field.asPrimitiveType().getPrimitiveTypeName(), field.getRepetition());
        String crs = (String) systems.get(id);
        Types.Builder geometry = builder.as(LogicalTypeAnnotation.geometryType(crs.isEmpty() ? null : crs));
        fields.add(geometry.id(id.intValue()).named(field.getName()));
      } else {
        fields.add(field);
      }
    }
    return fields;
  }

  public void prepareForWrite(RecordConsumer consumer) {
    super.prepareForWrite(consumer);
    Object[] writers = Fields.writers(consumer);
    List columns = schema.getColumns();
    ArrayList found = new ArrayList();
    for (int i = 0; i < columns.size(); i++) {
      PrimitiveType type = ((ColumnDescriptor) columns.get(i)).getPrimitiveType();
      Integer id = type.getId() == null ? null : Integer.valueOf(type.getId().intValue());
      if (names.containsKey(id)) found.add(new Slot(this, writers[i], (String) names.get(id)));
    }
    slots = (Slot[]) found.toArray(new Slot[0]);
  }

  public void write(InternalRow row) {
    for (int i = 0; i < slots.length; i++) slots[i].fill();
    super.write(row);
    rows++;
  }

  IllegalArgumentException refused(String name, String problem, boolean isEwkb) {
    String hint = isEwkb ? ewkbHint : "";
    // Python recognizes it by its marks (icefloe/spark/shaping.py).
    return new IllegalArgumentException("icefloe<<" + name + ", row " + rows + ": " + problem + hint + ">>");
  }
}

/** Where Parquet's library keeps what makes the box of a page: anew for each page, so it is looked at before each row. */
class Slot {
  private final ShapesSupport support;
  private final Object collector;
  private final String name;
  private Box box;

  Slot(ShapesSupport support, Object writer, String name) {
    this.support = support;
    this.collector = Fields.collector(writer);
    this.name = name;
  }

  void fill() {
    if (box != null && Fields.builder(collector) == box) return;
    box = new Box(support, name);
    Fields.fill(collector, box);
  }
}

/** The private fields of Parquet's library that lead there. */
class Fields {
  private static Field writers;
  private static Field collector;
  private static Field builder;

  static synchronized void find() {
    if (builder != null) return;
    try {
      writers = open("org.apache.parquet.io.MessageColumnIO$MessageColumnIORecordConsumer", "columnWriters");
      collector = open("org.apache.parquet.column.impl.ColumnWriterBase", "collector");
      builder = open("org.apache.parquet.column.impl.ColumnValueCollector", "geospatialStatisticsBuilder");
    } catch (Exception e) {
      throw new IllegalStateException("Parquet's writer has another form", e);
    }
  }

  private static Field open(String owner, String name) throws Exception {
    Field field = Class.forName(owner, true, GeospatialStatistics.class.getClassLoader()).getDeclaredField(name);
    field.setAccessible(true);
    return field;
  }

  static Object[] writers(RecordConsumer consumer) {
    find();
    Object inner = consumer;
    // Others stand before it where records are validated, or logged.
    while (!writers.getDeclaringClass().isInstance(inner)) inner = delegate(inner);
    return (Object[]) read(writers, inner);
  }

  private static Object delegate(Object outer) {
    try {
      return read(open(outer.getClass().getName(), "delegate"), outer);
    } catch (Exception e) {
      throw new IllegalStateException("Parquet's writer has another form", e);
    }
  }

  static Object collector(Object writer) {
    return read(collector, writer);
  }

  static Object builder(Object ofCollector) {
    return read(builder, ofCollector);
  }

  static void fill(Object ofCollector, GeospatialStatistics.Builder value) {
    try {
      builder.set(ofCollector, value);
    } catch (IllegalAccessException e) {
      throw new IllegalStateException(e);
    }
  }

  private static Object read(Field field, Object owner) {
    try {
      return field.get(owner);
    } catch (IllegalAccessException e) {
      throw new IllegalStateException(e);
    }
  }
}

/** The box around the shapes of a page, each of which must be one whole ISO WKB value. */
class Box extends GeospatialStatistics.Builder {
  private static final String[] NAMES = new String[18];
  private static final int[] MEMBERS = new int[18];
  private static final int[][] AXES = new int[][] {{0, 1}, {0, 1, 2}, {0, 1, 3}, {0, 1, 2, 3}};
  private static final String[] SUFFIXES = new String[] {"", " Z", " M", " ZM"};
  private static final int POINT = 1;
  private static final int LINE = 2;
  private static final int POLYGON = 3;
  private static final int COLLECTION = 7;
  private static final int TRIANGLE = 17;
  private static final int MOST_DEEP = 64;

  static {
    String[] names = new String[] {
      "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION"
    };
    for (int i = 0; i < names.length; i++) NAMES[i + 1] = names[i];
    NAMES[15] = "POLYHEDRALSURFACE";
    NAMES[16] = "TIN";
    NAMES[TRIANGLE] = "TRIANGLE";
    MEMBERS[4] = POINT;
    MEMBERS[5] = LINE;
    MEMBERS[6] = POLYGON;
    MEMBERS[15] = POLYGON;
    MEMBERS[16] = TRIANGLE;
  }

  private final ShapesSupport support;
  private final String name;
  private final double[] low = new double[4];
  private final double[] high = new double[4];
  private final HashSet types = new HashSet();
  private int lastType = -1;
  private boolean isUnknown;
  private ByteBuffer data;
  private int size;
  private int at;
  private int type;

  Box(ShapesSupport support, String name) {
    this.support = support;
    this.name = name;
    Arrays.fill(low, Double.POSITIVE_INFINITY);
    Arrays.fill(high, Double.NEGATIVE_INFINITY);
  }

  public void update(Binary value) {
    data = (ByteBuffer) value.toByteBuffer().slice();
    size = data.limit();
    at = 0;
    shape(0);
    if (at != size) throw refused("WKB has " + (size - at) + " bytes after its end, at byte " + at);
    if (type != lastType) {
      types.add(Integer.valueOf(type));
      lastType = type;
    }
  }

  public void abort() {
    isUnknown = true;
  }

  public GeospatialStatistics build() {
    BoundingBox box = new BoundingBox(low[0], high[0], low[1], high[1], low[2], high[2], low[3], high[3]);
    GeospatialTypes codes = new GeospatialTypes(types);
    if (isUnknown) {
      box.abort();
      codes.abort();
    }
    return new GeospatialStatistics(box, codes);
  }

  /** Walk through a shape; its type is the last one that was read. */
  private void shape(int depth) {
    if (depth > MOST_DEEP) throw refused("WKB nests geometries more than " + MOST_DEEP + " deep");
    int start = at;
    if (at >= size || (data.get(at) & 0xFE) != 0) {
      throw refused("WKB has no byte order, 0 or 1, at byte " + at + " of " + size);
    }
    ByteOrder order = data.get(at) == 1 ? ByteOrder.LITTLE_ENDIAN : ByteOrder.BIG_ENDIAN;
    data.order(order);
    at++;
    long own = count();
    int code = (int) (own % 1000);
    int dimensions = (int) Math.min(own / 1000, 4);
    if (dimensions > 3 || code >= NAMES.length || NAMES[code] == null) {
      String problem = "WKB has the unknown geometry type " + own + " at byte " + (start + 1);
      throw support.refused(name, problem, own >> 29 != 0);
    }
    // Neither pyarrow nor JTS has a box of these.
    if (code > COLLECTION) isUnknown = true;
    if (code == POINT) {
      positions(1, AXES[dimensions]);
    } else if (code == LINE) {
      positions(count(), AXES[dimensions]);
    } else {
      long parts = count();
      need(4 * parts);
      for (long i = 0; i < parts; i++) {
        if (code == POLYGON || code == TRIANGLE) positions(count(), AXES[dimensions]);
        else member(code, dimensions, depth, order);
      }
    }
    type = (int) own;
  }

  private void member(int code, int dimensions, int depth, ByteOrder order) {
    shape(depth + 1);
    data.order(order);
    if (code != COLLECTION && type != dimensions * 1000 + MEMBERS[code]) {
      String tag = NAMES[type % 1000] + SUFFIXES[type / 1000];
      throw refused("WKB has a " + tag + " inside a " + NAMES[code] + ", before byte " + at);
    }
  }

  private void positions(long count, int[] axes) {
    need(8 * axes.length * count);
    for (long i = 0; i < count; i++) {
      for (int j = 0; j < axes.length; j++) {
        double number = data.getDouble(at);
        at += 8;
        int axis = axes[j];
        // NaN is neither.
        if (number < low[axis]) low[axis] = number;
        if (number > high[axis]) high[axis] = number;
      }
    }
  }

  private long count() {
    need(4);
    long number = data.getInt(at) & 0xFFFFFFFFL;
    at += 4;
    return number;
  }

  private void need(long bytes) {
    if (at + bytes > size) {
      throw refused("WKB of " + size + " bytes ends early: " + bytes + " bytes are needed at byte " + at);
    }
  }

  private IllegalArgumentException refused(String problem) {
    return support.refused(name, problem, false);
  }
}
