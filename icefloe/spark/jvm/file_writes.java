// How Spark's Parquet writer is given the frames and the micro-batches that become data files, by one call from Python each.
package PACKAGE;

import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.Job;
import org.apache.spark.internal.io.FileCommitProtocol;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FileFormatWriter;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import scala.Option;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction0;
import scala.runtime.BoxedUnit;

/** What Python calls. */
public class Entry {
  public Entry() {
    Write.method();
  }

  /** A format that writes the ids of a table's schema; `inner` takes the last columns of a query for itself, as many as `noted`. */
  public FileFormat withIds(String schema, ParquetFileFormat inner, int noted) {
    return new IdFormat((StructType) DataType.fromJson(schema), inner, noted);
  }

  /** Spark's own format. */
  public ParquetFileFormat parquet() {
    return new ParquetFileFormat();
  }

  /** Write a frame's rows to a folder; the columns of these names, with a zero between them, name folders in it. */
  public void insert(Dataset frame, String folder, Map options, String partition, FileFormat format) {
    LogicalPlan plan = frame.queryExecution().analyzed();
    Seq output = plan.output();
    ArrayList names = new ArrayList();
    for (int i = 0; i < output.length(); i++) names.add(((Attribute) output.apply(i)).name());
    ArrayList folders = new ArrayList();
    String[] wanted = partition.isEmpty() ? new String[0] : partition.split("\0");
    for (int i = 0; i < wanted.length; i++) folders.add(output.apply(names.indexOf(wanted[i])));
    Map none = (Map) scala.collection.immutable.Map$.MODULE$.empty();
    InsertIntoHadoopFsRelationCommand command = new InsertIntoHadoopFsRelationCommand(
        new Path(folder), none, false, seq(folders), Option.empty(), format, options, plan, SaveMode.Append,
        Option.empty(), Option.empty(), seq(names));
    Dataset.ofRows(frame.sparkSession(), command);
  }

  /** Write the rows of a query as it was planned, such as those of a micro-batch, with the settings of a session. */
  public void write(Dataset batch, SparkSession session, String folder, Map options, FileFormat format) {
    SQLExecution.withSQLConfPropagated(session, new Write(batch, session, folder, options, format));
  }

  static Seq seq(ArrayList items) {
    return CollectionConverters.asScala(items).toSeq();
  }
}

/** A job of Spark's writer over a physical plan. */
class Write extends AbstractFunction0 {
  private final Dataset batch;
  private final SparkSession session;
  private final String folder;
  private final Map options;
  private final FileFormat format;

  Write(Dataset batch, SparkSession session, String folder, Map options, FileFormat format) {
    this.batch = batch;
    this.session = session;
    this.folder = folder;
    this.options = options;
    this.format = format;
  }

  public Object apply() {
    Option before = SparkSession.getActiveSession();
    SparkSession.setActiveSession(session);
    try {
      return run();
    } finally {
      if (before.isDefined()) SparkSession.setActiveSession((SparkSession) before.get());
      else SparkSession.clearActiveSession();
    }
  }

  private Object run() {
    SparkPlan plan = batch.queryExecution().executedPlan();
    Configuration configuration = session.sessionState().newHadoopConfWithOptions(options);
    String to;
    try {
      Path path = new Path(folder);
      to = path.getFileSystem(configuration).makeQualified(path).toString();
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
    String committing = session.sessionState().conf().fileCommitProtocolClass();
    FileCommitProtocol committer = FileCommitProtocol.instantiate(committing, UUID.randomUUID().toString(), to, false);
    Map none = (Map) scala.collection.immutable.Map$.MODULE$.empty();
    Seq nothing = Entry.seq(new ArrayList());
    Object target = new FileFormatWriter.OutputSpec(to, none, plan.output());
    Object[] arguments = new Object[] {
      session, plan, format, committer, target, configuration, nothing, Option.empty(), nothing, options,
      Integer.valueOf(0), new Nothing()
    };
    Method method = method();
    try {
      return method.invoke(null, Arrays.copyOf(arguments, method.getParameterTypes().length));
    } catch (InvocationTargetException e) {
      Platform.throwException(e.getCause());
      return null;
    } catch (IllegalAccessException e) {
      throw new IllegalStateException(e);
    }
  }

  /** The method of Spark's writer, which has one parameter more from some version on. */
  static Method method() {
    Method[] methods = FileFormatWriter.class.getMethods();
    for (int i = 0; i < methods.length; i++) {
      int count = methods[i].getParameterTypes().length;
      if (methods[i].getName().equals("write") && (count == 11 || count == 12)) return methods[i];
    }
    throw new IllegalStateException("Spark's FileFormatWriter has another form");
  }
}

/** What is to be done before a job: nothing. */
class Nothing extends AbstractFunction0 {
  public Object apply() {
    return BoxedUnit.UNIT;
  }
}

/** Spark's Parquet format, except that it writes the ids of a table's schema. */
class IdFormat extends ParquetFileFormat {
  private final StructType table;
  private final ParquetFileFormat parquet;
  private final int noted;

  IdFormat(StructType table, ParquetFileFormat parquet, int noted) {
    this.table = table;
    this.parquet = parquet;
    this.noted = noted;
  }

  public OutputWriterFactory prepareWrite(
      org.apache.spark.sql.SparkSession session, Job job, Map options, StructType schema) {
    StructField[] stored = (StructField[]) Arrays.copyOf(schema.fields(), schema.length() - noted);
    return parquet.prepareWrite(session, job, options, withIds(new StructType(stored), table, ""));
  }

  /** The query's struct with the ids and the nullability of the table's, field by field. */
  private static StructType withIds(StructType ofQuery, StructType ofTable, String around) {
    if (!Arrays.equals(ofQuery.fieldNames(), ofTable.fieldNames())) {
      throw new IllegalStateException(
          "Spark would write the fields " + String.join(", ", ofQuery.fieldNames()) + " of "
              + (around.isEmpty() ? "the table" : around) + ", which has " + String.join(", ", ofTable.fieldNames()));
    }
    StructField[] fields = new StructField[ofQuery.length()];
    for (int i = 0; i < fields.length; i++) {
      StructField field = ofQuery.fields()[i];
      StructField own = ofTable.fields()[i];
      DataType type = field.dataType();
      if (type instanceof StructType && own.dataType() instanceof StructType) {
        String path = around.isEmpty() ? field.name() : around + "." + field.name();
        type = withIds((StructType) type, (StructType) own.dataType(), path);
      }
      MetadataBuilder id = new MetadataBuilder().putLong(ID, own.metadata().getLong(ID));
      fields[i] = new StructField(field.name(), type, own.nullable(), id.build());
    }
    return new StructType(fields);
  }

  private static final String ID = "parquet.field.id";
}
