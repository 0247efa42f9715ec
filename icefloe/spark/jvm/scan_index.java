// The files of a relation, for which Python is asked once a query: everything else that Spark asks of them is known here.
package PACKAGE;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.MessageDigest;
import java.security.spec.X509EncodedKeySpec;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.function.BiFunction;
import java.util.function.Supplier;
import javax.crypto.Cipher;
import javax.crypto.KeyAgreement;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.KnownNullable;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation$;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.execution.datasources.parquet.ParquetUtils;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** What Python calls. */
public class Entry {
  /** A relation of files that `planner` knows; `label` distinguishes it from others, and `shown` is what plans show of it. */
  public HadoopFsRelation relation(
      SparkSession session, BiFunction planner, String label, String shown, String size,
      StructType constants, StructType schema, FileFormat format, Map options) {
    FileIndex index = new ScanIndex(session, planner, label, shown, Long.parseLong(size), constants, schema);
    return new HadoopFsRelation(index, constants, schema, Option.empty(), format, options, session);
  }

  /**
   * The rows of a relation, or of a plan, for which conditions are true, if there are any, as columns that users see, or as all: in
   * one plan, which Spark analyses once, or not at all if the columns are those of the relation under other names.
   */
  public Dataset rows(SparkSession session, Object source, Seq conditions, Seq output) {
    LogicalPlan plan = source instanceof LogicalPlan
        ? (LogicalPlan) source : LogicalRelation$.MODULE$.apply((HadoopFsRelation) source, false);
    for (int i = 0; conditions != null && i < conditions.length(); i++) {
      plan = new Filter(session.expression((Column) conditions.apply(i)), plan);
    }
    if (output != null) {
      Attributes attributes = new Attributes(plan);
      boolean areNamed = plan instanceof LogicalRelation;
      ArrayList columns = new ArrayList();
      for (int i = 0; i < output.length(); i++) {
        Expression column = session.expression((Column) output.apply(i));
        Expression named = areNamed ? attributes.named(column) : null;
        areNamed = named != null;
        columns.add(areNamed ? named : column);
      }
      plan = new Project(CollectionConverters.asScala(columns).toSeq(), plan);
      if (areNamed) plan.setAnalyzed();
    }
    return Dataset.ofRows(session, plan);
  }

  /** With what Python seals the keys of files that it gives here. */
  public byte[] publicKey() {
    return SealedKeys.publicKey();
  }

  /** Whether a session takes bytes for text, and whether its reader of these columns finds them by field id. */
  public String settings(SparkSession session, StructType schema) {
    return Settings.of(session, schema);
  }
}

/** The columns of a relation by their names. */
class Attributes {
  private final HashMap byName = new HashMap();

  Attributes(LogicalPlan plan) {
    Seq output = plan.output();
    for (int i = 0; i < output.length(); i++) byName.put(((Attribute) output.apply(i)).name(), output.apply(i));
  }

  /** A column under another name, resolved; null if the expression is anything else. */
  Expression named(Expression expression) {
    if (!(expression instanceof Alias)) return null;
    Expression column = ((Alias) expression).child();
    boolean isNullable = column instanceof KnownNullable;
    if (isNullable) column = ((KnownNullable) column).child();
    Seq parts = column instanceof UnresolvedAttribute ? ((UnresolvedAttribute) column).nameParts() : null;
    Expression attribute = parts == null || parts.length() != 1 ? null : (Expression) byName.get(parts.head());
    if (attribute == null) return null;
    ArrayList child = new ArrayList();
    child.add(isNullable ? new KnownNullable(attribute) : attribute);
    return (Expression) expression.withNewChildren(CollectionConverters.asScala(child).toSeq());
  }
}

/** How the reader of a session is set, in JSON. */
class Settings {
  static String of(SparkSession session, StructType schema) {
    SQLConf conf = session.sessionState().conf();
    boolean byId = ParquetUtils.isBatchReadSupportedForSchema(conf, schema) || conf.parquetFieldIdReadEnabled();
    return "[" + conf.isParquetBinaryAsString() + "," + byId + "]";
  }
}

/** Keys of files on their way from Python: what goes through py4j may be logged, so they are sealed for this JVM (X25519, AES GCM). */
class SealedKeys {
  private static final int NONCE = 12;
  private static KeyPair own;
  /** The public key of the newest sender, and what it shares with ours. */
  private static byte[] sender;
  private static SecretKeySpec shared;

  static synchronized byte[] publicKey() {
    try {
      if (own == null) own = KeyPairGenerator.getInstance("X25519").generateKeyPair();
      return own.getPublic().getEncoded();
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  /** What was sealed: the public key of the sender, a nonce, the bytes and their tag. */
  static synchronized byte[] open(byte[] sealed) {
    try {
      int length = own.getPublic().getEncoded().length;
      byte[] from = Arrays.copyOf(sealed, length);
      if (!Arrays.equals(from, sender)) {
        KeyAgreement agreement = KeyAgreement.getInstance("X25519");
        agreement.init(own.getPrivate());
        agreement.doPhase(KeyFactory.getInstance("X25519").generatePublic(new X509EncodedKeySpec(from)), true);
        shared = new SecretKeySpec(MessageDigest.getInstance("SHA-256").digest(agreement.generateSecret()), "AES");
        sender = from;
      }
      Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
      cipher.init(Cipher.DECRYPT_MODE, shared, new GCMParameterSpec(128, sealed, length, NONCE));
      return cipher.doFinal(sealed, length + NONCE, sealed.length - length - NONCE);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("the key of a file did not arrive as it was sent", e);
    }
  }
}

/** A file that says how many rows it has to whoever asks (optimizer.java). */
class CountedFile extends FileStatus implements Supplier {
  private final long rows;

  CountedFile(long size, Path path, long rows) {
    super(size, false, 1, 128L << 20, 0L, path);
    this.rows = rows;
  }

  public Object get() {
    return Long.valueOf(rows);
  }
}

/** An answer of Python, of which a long one comes in pieces; no value is in two of them. */
class Answer {
  final boolean isLasting;
  final String shown;
  private final BiFunction planner;
  private final String rest;
  private ByteBuffer piece;

  Answer(BiFunction planner, byte[] first) {
    this.planner = planner;
    piece = ByteBuffer.wrap(first);
    isLasting = piece.get() != 0;
    rest = Integer.toString(piece.getInt());
    shown = text();
  }

  int number() {
    return piece().getInt();
  }

  long longNumber() {
    return piece().getLong();
  }

  byte[] bytes() {
    byte[] content = new byte[number()];
    piece.get(content);
    return content;
  }

  String text() {
    return new String(bytes(), StandardCharsets.UTF_8);
  }

  private ByteBuffer piece() {
    if (!piece.hasRemaining()) piece = ByteBuffer.wrap((byte[]) planner.apply(rest, null));
    return piece;
  }
}

/** Indexes are equal if their labels are, so that Spark can reuse plans. */
class ScanIndex implements FileIndex, BiFunction {
  private final SparkSession session;
  private final BiFunction planner;
  private final String label;
  private final long size;
  private final StructType constants;
  private final StructType schema;
  private Seq paths;
  /** The newest question that may be answered in the same way again, and its answer. */
  private String asked;
  private Seq listed;

  ScanIndex(SparkSession session, BiFunction planner, String label, String shown, long size, StructType constants, StructType schema) {
    this.session = session;
    this.planner = planner;
    this.label = label;
    this.size = size;
    this.constants = constants;
    this.schema = schema;
    show(shown);
  }

  /** Nothing is below it: Spark only shows it in `explain()`. */
  public synchronized Seq rootPaths() {
    return paths;
  }

  private synchronized void show(String text) {
    ArrayList one = new ArrayList();
    one.add(new Path("icefloe", null, "/" + text));
    paths = CollectionConverters.asScala(one).toSeq();
  }

  public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
    StringBuilder text = new StringBuilder("{\"settings\":").append(Settings.of(session, schema));
    text.append(",\"constant\":");
    trees(text, partitionFilters);
    text.append(",\"data\":");
    trees(text, dataFilters);
    String question = text.append("}").toString();
    synchronized (this) {
      if (question.equals(asked)) return listed;
    }
    Answer answer = new Answer(planner, (byte[]) planner.apply(question, new Object[] {partitionFilters, dataFilters}));
    Seq directories = directories(answer);
    synchronized (this) {
      asked = answer.isLasting ? question : null;
      listed = answer.isLasting ? directories : null;
    }
    return directories;
  }

  /** What a rule of ours asks (optimizer.java): files come as Spark lists them, other answers as they are; null is none. */
  public Object apply(Object about, Object request) {
    Object answer = planner.apply("{\"settings\":" + Settings.of(session, schema) + ",\"about\":\"" + about + "\"}", request);
    return answer instanceof byte[] ? directories(new Answer(planner, (byte[]) answer)) : answer;
  }

  /** Expressions as a JSON array; one that Spark has no JSON for is empty. */
  private static void trees(StringBuilder text, Seq filters) {
    text.append("[");
    for (int i = 0; i < filters.length(); i++) {
      String tree;
      try {
        tree = ((Expression) filters.apply(i)).toJSON();
      } catch (Exception e) {
        tree = "[]";
      }
      text.append(i == 0 ? "" : ",").append(tree);
    }
    text.append("]");
  }

  /** Rows of constants, each with its files, and with each file how many rows it has, which are deleted of it, and its key. */
  private Seq directories(Answer answer) {
    show(answer.shown);
    int width = answer.number();
    ArrayList directories = new ArrayList();
    for (int groups = answer.number(); groups > 0; groups--) {
      UnsafeRow row = new UnsafeRow(width);
      byte[] values = answer.bytes();
      row.pointTo(values, values.length);
      ArrayList files = new ArrayList();
      for (int count = answer.number(); count > 0; count--) files.add(file(answer));
      directories.add(new PartitionDirectory((InternalRow) row, CollectionConverters.asScala(files).toSeq()));
    }
    return CollectionConverters.asScala(directories).toSeq();
  }

  private static FileStatusWithMetadata file(Answer answer) {
    Path path = new Path(answer.text());
    long size = answer.longNumber();
    FileStatus status = new CountedFile(size, path, answer.longNumber());
    byte[] deleted = answer.bytes();
    byte[] key = answer.bytes();
    Map facts = (Map) scala.collection.immutable.Map$.MODULE$.empty();
    if (deleted.length > 0) facts = (Map) facts.updated("icefloe.deleted", deleted);
    if (key.length > 0) facts = (Map) facts.updated("icefloe.key", SealedKeys.open(key));
    return new FileStatusWithMetadata(status, facts);
  }

  public String[] inputFiles() {
    String locations = (String) planner.apply("", null);
    return locations.isEmpty() ? new String[0] : locations.split("\0");
  }

  public void refresh() {}

  public long sizeInBytes() {
    return size;
  }

  public StructType partitionSchema() {
    return constants;
  }

  public boolean isTimeTravel() {
    return false;
  }

  public Option metadataOpsTimeNs() {
    return Option.empty();
  }

  public String toString() {
    return label;
  }

  public int hashCode() {
    return label.hashCode();
  }

  public boolean equals(Object other) {
    return other != null && other.getClass() == getClass() && ((ScanIndex) other).label.equals(label);
  }
}
