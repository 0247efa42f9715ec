// Joins, aggregates and windows by the partitions of tables, without exchanges: tasks read the files of whole partitions, and
// those of joined tables read the same partitions.
//
// Files of a table are divided into groups, by the values of some of its partition fields. Scans that are joined get the same
// list of groups, and a group that a table lacks is empty. A partitioning of our own says so to Spark's planner, which decides by
// it where exchanges go: none below an aggregate on columns of the division, and none below a join of two sides that are divided
// by the same list, on the columns that they are divided by.
package PACKAGE;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.PriorityQueue;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiFunction;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.apache.hadoop.fs.Path;
import org.apache.spark.Partition;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Ascending$;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Descending$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NullOrdering;
import org.apache.spark.sql.catalyst.expressions.NullsFirst$;
import org.apache.spark.sql.catalyst.expressions.NullsLast$;
import org.apache.spark.sql.catalyst.expressions.SortDirection;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.catalyst.plans.physical.AllTuples$;
import org.apache.spark.sql.catalyst.plans.physical.ClusteredDistribution;
import org.apache.spark.sql.catalyst.plans.physical.Distribution;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.catalyst.plans.physical.ShuffleSpec;
import org.apache.spark.sql.catalyst.plans.physical.ShuffleSpecCollection;
import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning;
import org.apache.spark.sql.catalyst.plans.physical.UnspecifiedDistribution$;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.PartitioningPreservingUnaryExecNode;
import org.apache.spark.sql.execution.SortExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.joins.BaseJoinExec;
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec;
import org.apache.spark.sql.execution.joins.ShuffledJoin;
import org.apache.spark.sql.execution.window.WindowExecBase;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import scala.Option;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/** What the strategy of optimizer.java calls with a physical plan that has no exchanges yet. */
public class Entry implements UnaryOperator {
  public Entry() {
    GroupedScan.partitions();
  }

  public Object apply(Object plan) {
    return new Grouping().applied((SparkPlan) plan);
  }
}

class Lists {
  static List list(Seq items) {
    return CollectionConverters.asJava(items);
  }

  static Seq seq(List items) {
    return CollectionConverters.asScala(items).toSeq();
  }
}

/** What users set of joins. */
class Settings {
  /** Whether a join needs exchanges if there are fewer columns in the division than keys in the join, which may be skewed then. */
  static boolean needsAllKeys() {
    return isSet("spark.sql.requireAllClusterKeysForCoPartition", "true");
  }

  /** Whether tables with different numbers of buckets are joined by fewer. */
  static boolean mayReduce() {
    return isSet("spark.sql.sources.v2.bucketing.allowCompatibleTransforms.enabled", "false");
  }

  /** Whether tasks that read one sorted file each say so; Java's name for it; off by default, since it relies on what writers said. */
  static boolean tellsOrder() {
    return isSet("spark.sql.iceberg.planning.preserve-data-ordering", "false");
  }

  private static boolean isSet(String setting, String unset) {
    return SQLConf.get().getConfString(setting, unset).equalsIgnoreCase("true");
  }
}

/** The partition fields of a scan, and the values of its files. */
class Partitions {
  final FileSourceScanExec scan;
  /** Columns with their transforms, as one text each. */
  final String[] columns;
  final String[] transforms;
  final ArrayList paths = new ArrayList();
  final ArrayList sizes = new ArrayList();
  final ArrayList values = new ArrayList();
  /** What all files are sorted by: column, direction, and where nulls are. */
  private final ArrayList sorted = new ArrayList();

  private Partitions(FileSourceScanExec scan, String[] texts) {
    this.scan = scan;
    int count = Integer.parseInt(texts[0]);
    columns = new String[count];
    transforms = new String[count];
    int place = 1;
    for (int i = 0; i < count; i++) {
      columns[i] = texts[place++];
      transforms[i] = texts[place++];
    }
    for (int left = Integer.parseInt(texts[place++]); left > 0; left--) {
      sorted.add(Arrays.copyOfRange(texts, place, place + 3));
      place += 3;
    }
    while (place < texts.length) {
      paths.add(new Path(texts[place++]));
      sizes.add(Long.valueOf(texts[place++]));
      values.add(Arrays.copyOfRange(texts, place, place + count));
      place += count;
    }
  }

  /** Those of a scan of ours; null if it is none, or files are not partitioned all in the same way. */
  static Partitions of(FileSourceScanExec scan) {
    Object files = scan.relation().location();
    if (!(files instanceof Supplier) || !scan.relation().options().contains("icefloe.scan")) return null;
    if (!(scan.outputPartitioning() instanceof UnknownPartitioning)) return null;
    String answer = (String) ((BiFunction) files).apply("groups", null);
    return answer == null ? null : new Partitions(scan, answer.split("\0", -1));
  }

  /** By which columns of the scan each file is sorted. */
  Seq order() {
    ArrayList order = new ArrayList();
    for (int i = 0; i < sorted.size() && order.size() == i; i++) {
      String[] one = (String[]) sorted.get(i);
      SortDirection direction = one[1].equals("asc") ? (SortDirection) Ascending$.MODULE$ : (SortDirection) Descending$.MODULE$;
      NullOrdering nulls = one[2].equals("nulls first") ? (NullOrdering) NullsFirst$.MODULE$ : (NullOrdering) NullsLast$.MODULE$;
      for (int j = 0; j < scan.output().size(); j++) {
        Attribute column = (Attribute) scan.output().apply(j);
        if (column.name().equals(one[0])) order.add(new SortOrder(column, direction, nulls, Lists.seq(new ArrayList())));
      }
    }
    return Lists.seq(order);
  }

  /** The values of a file in some fields, as those of transforms that these are finer than, or equal to. */
  String key(int file, int[] fields, String[] coarser) {
    StringBuilder text = new StringBuilder();
    String[] all = (String[]) values.get(file);
    for (int i = 0; i < fields.length; i++) {
      boolean isSame = coarser[i].equals(transforms[fields[i]]);
      text.append(isSame ? all[fields[i]] : Buckets.reduced(all[fields[i]], coarser[i])).append("\0");
    }
    return text.toString();
  }
}

/** Transforms as Python writes them, of which buckets can be made fewer: "bucket[16] of long". */
class Buckets {
  private static final String BUCKET = "bucket[";

  /** How many there are; 0 if a transform is another. */
  private static int count(String transform) {
    return transform.startsWith(BUCKET) ? Integer.parseInt(transform.substring(BUCKET.length(), transform.indexOf(']'))) : 0;
  }

  /** What two transforms can both be reduced to; null if nothing. */
  static String common(String one, String other) {
    if (one.equals(other)) return one;
    String rest = one.substring(one.indexOf(']') + 1);
    if (count(one) == 0 || count(other) == 0 || !rest.equals(other.substring(other.indexOf(']') + 1))) return null;
    int divisor = java.math.BigInteger.valueOf(count(one)).gcd(java.math.BigInteger.valueOf(count(other))).intValue();
    return divisor == 1 ? null : BUCKET + divisor + "]" + rest;
  }

  static String reduced(String value, String transform) {
    return value.equals("None") ? value : String.valueOf(Integer.parseInt(value) % count(transform));
  }
}

/** A column of a scan. */
class Source {
  final Partitions partitions;
  final Attribute column;

  Source(Partitions partitions, Attribute column) {
    this.partitions = partitions;
    this.column = column;
  }

  /** Which field of the partitions is a transform of the column, by the transform, or any; -1 if none is. */
  int field(String transform) {
    for (int i = 0; i < partitions.columns.length; i++) {
      if (partitions.columns[i].equals(column.name()) && (transform == null || partitions.transforms[i].equals(transform))) return i;
    }
    return -1;
  }
}

/** A scan that is divided, by which fields of its partitions, and the columns that they are of. */
class Member {
  final Partitions partitions;
  final int[] fields;
  final ArrayList columns = new ArrayList();

  Member(List sources, List transforms) {
    partitions = ((Source) sources.get(0)).partitions;
    fields = new int[sources.size()];
    for (int i = 0; i < fields.length; i++) {
      Source source = (Source) sources.get(i);
      fields[i] = source.field((String) transforms.get(i));
      columns.add(source.column);
    }
  }

  String transform(int place) {
    return partitions.transforms[fields[place]];
  }

  /** What the fields of members can all be reduced to; null if one place has nothing. */
  static String[] common(List members) {
    String[] transforms = new String[((Member) members.get(0)).fields.length];
    for (int i = 0; i < transforms.length; i++) {
      transforms[i] = ((Member) members.get(0)).transform(i);
      for (int j = 1; j < members.size(); j++) {
        transforms[i] = Buckets.common(transforms[i], ((Member) members.get(j)).transform(i));
        if (transforms[i] == null) return null;
      }
    }
    return transforms;
  }
}

/** Which scans of a plan are divided together. */
class Grouping {
  private final IdentityHashMap known = new IdentityHashMap();
  /** Lists of members by scan; scans that are divided together have the same list. */
  private final IdentityHashMap together = new IdentityHashMap();

  SparkPlan applied(SparkPlan plan) {
    visit(plan);
    if (together.isEmpty()) return plan;
    IdentityHashMap replaced = new IdentityHashMap();
    IdentityHashMap divisions = new IdentityHashMap();
    ArrayList all = new ArrayList(together.entrySet());
    for (int i = 0; i < all.size(); i++) {
      java.util.Map.Entry one = (java.util.Map.Entry) all.get(i);
      if (!divisions.containsKey(one.getValue())) divisions.put(one.getValue(), new Division((List) one.getValue()));
      Division division = (Division) divisions.get(one.getValue());
      Member member = member((FileSourceScanExec) one.getKey());
      Groups groups = new Groups(division, member);
      Seq order = Settings.tellsOrder() && groups.areOfOneFile() ? member.partitions.order() : Lists.seq(new ArrayList());
      GroupedScan scan = new GroupedScan((SparkPlan) one.getKey(), groups, Lists.seq(member.columns), order);
      scan.copyTagsFrom((SparkPlan) one.getKey());
      replaced.put(one.getKey(), scan);
    }
    return (SparkPlan) new ReplaceScans(replaced).apply(plan);
  }

  private Member member(FileSourceScanExec scan) {
    List members = (List) together.get(scan);
    for (int i = 0; members != null && i < members.size(); i++) {
      if (((Member) members.get(i)).partitions.scan == scan) return (Member) members.get(i);
    }
    return null;
  }

  private void visit(SparkPlan plan) {
    List children = Lists.list(plan.children());
    for (int i = 0; i < children.size(); i++) visit((SparkPlan) children.get(i));
    if (plan instanceof ShuffledJoin) {
      BaseJoinExec join = (BaseJoinExec) plan;
      join((SparkPlan) children.get(0), Lists.list(join.leftKeys()), (SparkPlan) children.get(1), Lists.list(join.rightKeys()));
    } else if (children.size() == 1 && plan.requiredChildDistribution().head() instanceof ClusteredDistribution) {
      ClusteredDistribution needed = (ClusteredDistribution) plan.requiredChildDistribution().head();
      alone((SparkPlan) children.get(0), Lists.list(needed.clustering()));
    }
  }

  // -- one scan, for an aggregate or a window

  private void alone(SparkPlan child, List keys) {
    ArrayList sources = new ArrayList();
    ArrayList transforms = new ArrayList();
    for (int i = 0; i < keys.size(); i++) {
      Source source = source(child, (Expression) keys.get(i));
      if (source == null || source.field(null) < 0 || together.containsKey(source.partitions.scan)) continue;
      if (!sources.isEmpty() && ((Source) sources.get(0)).partitions != source.partitions) continue;
      sources.add(source);
      transforms.add(source.partitions.transforms[source.field(null)]);
    }
    if (sources.isEmpty()) return;
    together.put(((Source) sources.get(0)).partitions.scan, alone(new Member(sources, transforms)));
  }

  private static List alone(Member member) {
    ArrayList members = new ArrayList();
    members.add(member);
    return members;
  }

  // -- two scans, for a join

  private void join(SparkPlan left, List leftKeys, SparkPlan right, List rightKeys) {
    ArrayList ofLeft = new ArrayList();
    ArrayList ofRight = new ArrayList();
    ArrayList leftTransforms = new ArrayList();
    ArrayList rightTransforms = new ArrayList();
    for (int i = 0; i < leftKeys.size(); i++) {
      Source one = source(left, (Expression) leftKeys.get(i));
      Source other = source(right, (Expression) rightKeys.get(i));
      if (one == null || other == null) continue;
      boolean isSame = ofLeft.isEmpty()
          || (((Source) ofLeft.get(0)).partitions == one.partitions && ((Source) ofRight.get(0)).partitions == other.partitions);
      String[] transforms = isSame ? common(one, other) : null;
      if (transforms == null) continue;
      ofLeft.add(one);
      ofRight.add(other);
      leftTransforms.add(transforms[0]);
      rightTransforms.add(transforms[1]);
    }
    if (ofLeft.isEmpty() || (Settings.needsAllKeys() && ofLeft.size() < leftKeys.size())) return;
    unite(new Member(ofLeft, leftTransforms), new Member(ofRight, rightTransforms));
  }

  /** The transforms by which columns of two scans are partitioned alike, or that can be reduced to one, if Spark is set to allow it. */
  private String[] common(Source one, Source other) {
    String[] reducible = null;
    for (int i = 0; i < one.partitions.transforms.length; i++) {
      if (!one.partitions.columns[i].equals(one.column.name()) || !isFree(one, one.partitions.transforms[i])) continue;
      for (int j = 0; j < other.partitions.transforms.length; j++) {
        String[] both = new String[] {one.partitions.transforms[i], other.partitions.transforms[j]};
        if (!other.partitions.columns[j].equals(other.column.name()) || !isFree(other, both[1])) continue;
        if (both[0].equals(both[1])) return both;
        if (Buckets.common(both[0], both[1]) != null) reducible = both;
      }
    }
    return Settings.mayReduce() ? reducible : null;
  }

  /** Whether a scan is not divided yet, or by this. */
  private boolean isFree(Source source, String transform) {
    Member member = member(source.partitions.scan);
    return member == null || isAmong(member.fields, source.field(transform));
  }

  /** How the scan of a member is divided, if that cannot become this; what is divided for itself can be by fewer of its fields. */
  private Member fixed(Member now) {
    Member before = member(now.partitions.scan);
    boolean isOwn = before != null && ((List) together.get(now.partitions.scan)).size() == 1;
    for (int i = 0; isOwn && i < now.fields.length; i++) isOwn = isAmong(before.fields, now.fields[i]);
    return isOwn ? null : before;
  }

  private static boolean isAmong(int[] fields, int field) {
    for (int i = 0; i < fields.length; i++) if (fields[i] == field) return true;
    return false;
  }

  /** Divide two scans together, and with those that they are divided with already. */
  private void unite(Member one, Member other) {
    Member before = fixed(one);
    Member beforeOther = fixed(other);
    int[] order = order(one, before);
    int[] orderOther = order(other, beforeOther);
    // Fields are paired by their places in the join, which must be the same in both divisions.
    if (order == null || orderOther == null || (before != null && beforeOther != null && !Arrays.equals(order, orderOther))) return;
    if (before == null && beforeOther != null) one = reordered(one, orderOther);
    if (beforeOther == null && before != null) other = reordered(other, order);
    List members = before == null ? alone(one) : (List) together.get(one.partitions.scan);
    List others = beforeOther == null ? alone(other) : (List) together.get(other.partitions.scan);
    if (members == others) return;
    members = new ArrayList(members);
    members.addAll(others);
    if (Member.common(members) == null) return;
    for (int i = 0; i < members.size(); i++) together.put(((Member) members.get(i)).partitions.scan, members);
  }

  /** Where each field of the division before is in the new one; null if they are not the same fields. */
  private static int[] order(Member now, Member before) {
    if (before == null) return new int[0];
    if (before.fields.length != now.fields.length) return null;
    int[] order = new int[now.fields.length];
    for (int i = 0; i < order.length; i++) {
      order[i] = -1;
      for (int j = 0; j < order.length; j++) if (now.fields[j] == before.fields[i]) order[i] = j;
      if (order[i] < 0) return null;
    }
    return order;
  }

  private static Member reordered(Member member, int[] order) {
    ArrayList sources = new ArrayList();
    ArrayList transforms = new ArrayList();
    for (int i = 0; i < order.length; i++) {
      sources.add(new Source(member.partitions, (Attribute) member.columns.get(order[i])));
      transforms.add(member.partitions.transforms[member.fields[order[i]]]);
    }
    return new Member(sources, transforms);
  }

  // -- where columns come from

  /** The column of a scan that an expression of a plan is, if rows stay in the tasks that read them; else null. */
  private Source source(SparkPlan plan, Expression wanted) {
    if (!(wanted instanceof Attribute)) return null;
    Attribute attribute = (Attribute) wanted;
    if (plan instanceof FileSourceScanExec) {
      Partitions partitions = partitions((FileSourceScanExec) plan);
      return partitions == null || !plan.outputSet().contains(attribute) ? null : new Source(partitions, attribute);
    }
    if (plan instanceof PartitioningPreservingUnaryExecNode) {
      List named = Lists.list(((PartitioningPreservingUnaryExecNode) plan).outputExpressions());
      for (int i = 0; i < named.size(); i++) {
        NamedExpression one = (NamedExpression) named.get(i);
        if (one.exprId().equals(attribute.exprId())) return below(plan, 0, one instanceof Alias ? ((Alias) one).child() : (Expression) one);
      }
      return null;
    }
    boolean isPlain = plan instanceof FilterExec || plan instanceof WindowExecBase || (plan instanceof SortExec && !((SortExec) plan).global());
    if (isPlain) return below(plan, 0, attribute);
    if (plan instanceof BroadcastHashJoinExec) {
      return below(plan, ((BroadcastHashJoinExec) plan).buildSide().toString().equals("BuildLeft") ? 1 : 0, attribute);
    }
    if (!(plan instanceof ShuffledJoin)) return null;
    String kind = ((BaseJoinExec) plan).joinType().toString();
    Source left = kind.equals("RightOuter") || kind.equals("FullOuter") ? null : below(plan, 0, attribute);
    return left != null || !(kind.equals("Inner") || kind.equals("RightOuter")) ? left : below(plan, 1, attribute);
  }

  private Source below(SparkPlan plan, int place, Expression wanted) {
    SparkPlan child = (SparkPlan) Lists.list(plan.children()).get(place);
    return wanted instanceof Attribute && child.outputSet().contains((Attribute) wanted) ? source(child, wanted) : null;
  }

  private Partitions partitions(FileSourceScanExec scan) {
    if (!known.containsKey(scan)) known.put(scan, Partitions.of(scan));
    return (Partitions) known.get(scan);
  }
}

class ReplaceScans extends AbstractFunction1 {
  private final IdentityHashMap replaced;

  ReplaceScans(IdentityHashMap replaced) {
    this.replaced = replaced;
  }

  public Object apply(Object plan) {
    return replaced.containsKey(plan) ? replaced.get(plan) : ((SparkPlan) plan).mapChildren(this);
  }
}

/** Which values go to which task, for all scans that are divided together. */
class Division {
  private static final long MOST_BYTES = 64L << 20;
  private static final long FEW_BYTES = 1L << 20;
  private final HashMap tasks = new HashMap();
  final int count;
  private final String label;
  private final String[] transforms;
  private final boolean isShared;

  Division(List members) {
    isShared = members.size() > 1;
    TreeMap sizes = new TreeMap();
    transforms = Member.common(members);
    long total = 0;
    for (int i = 0; i < members.size(); i++) {
      Member member = (Member) members.get(i);
      for (int file = 0; file < member.partitions.paths.size(); file++) {
        String key = member.partitions.key(file, member.fields, transforms);
        long size = ((Long) member.partitions.sizes.get(file)).longValue();
        long before = sizes.containsKey(key) ? ((Long) sizes.get(key)).longValue() : 0;
        sizes.put(key, Long.valueOf(before + size));
        total += size;
      }
    }
    Member first = (Member) members.get(0);
    int cores = first.partitions.scan.relation().sparkSession().sparkContext().defaultParallelism();
    // A task for each group keeps the order of its file; groups of less than so many bytes are sorted sooner than started.
    long most = isOfOrderedFiles(members) ? Math.max(64L * cores, total / FEW_BYTES) : 0;
    count = (int) Math.max(1, sizes.size() <= most ? sizes.size() : Math.min(sizes.size(), Math.max(2L * cores, total / MOST_BYTES)));
    fill(sizes);
    label = digest();
  }

  /** Whether some scan has one sorted file in each group, and is to tell its order. */
  private boolean isOfOrderedFiles(List members) {
    if (!Settings.tellsOrder()) return false;
    for (int i = 0; i < members.size(); i++) {
      Member member = (Member) members.get(i);
      HashSet keys = new HashSet();
      for (int file = 0; file < member.partitions.paths.size(); file++) keys.add(member.partitions.key(file, member.fields, transforms));
      if (!keys.isEmpty() && keys.size() == member.partitions.paths.size() && !member.partitions.order().isEmpty()) return true;
    }
    return false;
  }

  /** The task of a file of a scan. */
  Integer task(Member member, int file) {
    return (Integer) tasks.get(member.partitions.key(file, member.fields, transforms));
  }

  /** The largest group goes to the task with the least bytes, and so on. */
  private void fill(TreeMap sizes) {
    ArrayList groups = new ArrayList(sizes.entrySet());
    Collections.sort(groups, new LargestFirst());
    PriorityQueue queue = new PriorityQueue(count, new LeastFirst());
    for (int i = 0; i < count; i++) queue.add(new long[] {0, i});
    for (int i = 0; i < groups.size(); i++) {
      java.util.Map.Entry group = (java.util.Map.Entry) groups.get(i);
      long[] task = (long[]) queue.poll();
      tasks.put(group.getKey(), Integer.valueOf((int) task[1]));
      // A group without bytes takes a task's time, too.
      queue.add(new long[] {task[0] + ((Long) group.getValue()).longValue() + 1, task[1]});
    }
  }

  private String digest() {
    StringBuilder text = new StringBuilder().append(count);
    for (int i = 0; i < transforms.length; i++) text.append("\1").append(transforms[i]);
    ArrayList all = new ArrayList(new TreeMap(tasks).entrySet());
    for (int i = 0; i < all.size(); i++) text.append("\1").append(all.get(i));
    try {
      byte[] hash = java.security.MessageDigest.getInstance("SHA-256").digest(text.toString().getBytes(StandardCharsets.UTF_8));
      return new java.math.BigInteger(1, hash).toString(16);
    } catch (java.security.NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Whether several scans are divided by this. */
  boolean isShared() {
    return isShared;
  }

  public int hashCode() {
    return label.hashCode();
  }

  public boolean equals(Object other) {
    return other instanceof Division && ((Division) other).label.equals(label);
  }

  public String toString() {
    return tasks.size() + " groups by " + String.join(", ", transforms) + " in " + count + " tasks";
  }
}

class LargestFirst implements Comparator {
  public int compare(Object one, Object other) {
    return ((Long) ((java.util.Map.Entry) other).getValue()).compareTo((Long) ((java.util.Map.Entry) one).getValue());
  }
}

class LeastFirst implements Comparator {
  public int compare(Object one, Object other) {
    int bySize = Long.compare(((long[]) one)[0], ((long[]) other)[0]);
    return bySize != 0 ? bySize : Long.compare(((long[]) one)[1], ((long[]) other)[1]);
  }
}

/** Rows that are alike in these columns are in the same task: the one that the division has for the group of their values. */
public class GroupedPartitioning extends Expression implements Partitioning {
  final Division division;
  final Seq columns;

  GroupedPartitioning(Division division, Seq columns) {
    this.division = division;
    this.columns = columns;
  }

  public int numPartitions() { return division.count; }
  public Seq children() { return columns; }
  public boolean nullable() { return false; }
  public DataType dataType() { return DataTypes.IntegerType; }
  public String toString() { return "grouped(" + columns.mkString(", ") + ", " + division + ")"; }
  public int productArity() { return 2; }
  public Object productElement(int place) { return place == 0 ? (Object) division : (Object) columns; }
  public boolean canEqual(Object other) { return other instanceof GroupedPartitioning; }
  public int hashCode() { return division.hashCode() * 31 + columns.hashCode(); }

  public boolean equals(Object other) {
    if (!(other instanceof GroupedPartitioning)) return false;
    GroupedPartitioning that = (GroupedPartitioning) other;
    return division.equals(that.division) && columns.equals(that.columns);
  }

  public TreeNode withNewChildrenInternal(IndexedSeq children) {
    return new GroupedPartitioning(division, children.toSeq());
  }

  public boolean satisfies0(Distribution required) {
    if (required == UnspecifiedDistribution$.MODULE$) return true;
    if (required == AllTuples$.MODULE$) return division.count == 1;
    if (!(required instanceof ClusteredDistribution)) return false;
    ClusteredDistribution clustered = (ClusteredDistribution) required;
    if (clustered.requireAllClusterKeys()) return clustered.areAllClusterKeysMatched(columns);
    return areAllAmong(columns, clustered.clustering());
  }

  /** Whether each of some expressions is one of others. */
  static boolean areAllAmong(Seq some, Seq others) {
    for (int i = 0; i < some.size(); i++) {
      boolean isFound = false;
      for (int j = 0; j < others.size(); j++) isFound |= ((Expression) some.apply(i)).semanticEquals((Expression) others.apply(j));
      if (!isFound) return false;
    }
    return true;
  }

  public ShuffleSpec createShuffleSpec(ClusteredDistribution distribution) {
    return new GroupedSpec(this, distribution.clustering());
  }

  public Object eval(InternalRow row) {
    throw new UnsupportedOperationException("the task of a row is not computed");
  }

  public ExprCode doGenCode(CodegenContext context, ExprCode code) {
    throw new UnsupportedOperationException("the task of a row is not computed");
  }

  /** Tasks may carry the plan that they are of; they have no need of this, and do not know its class. */
  protected Object writeReplace() {
    return new UnknownPartitioning(division.count);
  }
}

/**
 * What Spark asks whether the two sides of a join are divided alike. It chooses one that could shuffle the other side, and asks it
 * of each side, its own too, whether that stays as it is. No exchange can make a division, so its first answer is for both sides:
 * they stay, or an exchange by hash is put below each.
 */
class GroupedSpec implements ShuffleSpec {
  private static final AtomicInteger MADE = new AtomicInteger(Integer.MIN_VALUE);
  private final GroupedPartitioning partitioning;
  private final Seq keys;
  private final int order = MADE.getAndIncrement();
  private Boolean answer;

  GroupedSpec(GroupedPartitioning partitioning, Seq keys) {
    this.partitioning = partitioning;
    this.keys = keys;
  }

  /**
   * Spark chooses the largest, and should choose the right side, which is asked about the left one first, before it is asked about
   * itself. That one is made later. What Spark's own partitionings can do with one exchange comes before both.
   */
  public int numPartitions() {
    return answer == null ? order : partitioning.numPartitions();
  }

  public boolean canCreatePartitioning() {
    boolean isEnough = !Settings.needsAllKeys() || GroupedPartitioning.areAllAmong(keys, partitioning.columns);
    return isEnough && partitioning.division.isShared();
  }

  public Partitioning createPartitioning(Seq clustering) {
    return new HashPartitioning(clustering, SQLConf.get().numShufflePartitions());
  }

  public boolean isCompatibleWith(ShuffleSpec other) {
    if (answer == null) answer = Boolean.valueOf(isLikeOneOf(all(other)));
    return answer.booleanValue();
  }

  private static List all(ShuffleSpec spec) {
    ArrayList all = new ArrayList();
    if (spec instanceof ShuffleSpecCollection) {
      List specs = Lists.list(((ShuffleSpecCollection) spec).specs());
      for (int i = 0; i < specs.size(); i++) all.addAll(all((ShuffleSpec) specs.get(i)));
    } else {
      all.add(spec);
    }
    return all;
  }

  /** Whether another side is divided alike. To be asked about the own side first tells nothing about the other one. */
  private boolean isLikeOneOf(List side) {
    boolean isFound = false;
    for (int i = 0; i < side.size(); i++) {
      if (side.get(i) == this) return false;
      isFound |= side.get(i) instanceof GroupedSpec && isLike((GroupedSpec) side.get(i));
    }
    return isFound;
  }

  /** Whether rows that are alike in the keys are in the same task: each column of the division is compared with its like. */
  private boolean isLike(GroupedSpec other) {
    if (!partitioning.division.equals(other.partitioning.division)) return false;
    for (int place = 0; place < partitioning.columns.size(); place++) {
      boolean isPaired = false;
      for (int key = 0; key < Math.min(keys.size(), other.keys.size()); key++) isPaired |= isAt(key, place) && other.isAt(key, place);
      if (!isPaired) return false;
    }
    return true;
  }

  private boolean isAt(int key, int place) {
    return ((Expression) keys.apply(key)).semanticEquals((Expression) partitioning.columns.apply(place));
  }
}

/** The task of each file of a scan. */
class Groups {
  final Division division;
  private final HashMap tasks = new HashMap();

  Groups(Division division, Member member) {
    this.division = division;
    for (int i = 0; i < member.partitions.paths.size(); i++) {
      tasks.put(member.partitions.paths.get(i), division.task(member, i));
    }
  }

  /** Whether no task reads more than one file. */
  boolean areOfOneFile() {
    return new HashSet(tasks.values()).size() == tasks.size();
  }

  Partition[] divided(Partition[] partitions) {
    ArrayList[] files = new ArrayList[division.count];
    for (int i = 0; i < files.length; i++) files[i] = new ArrayList();
    for (int i = 0; i < partitions.length; i++) {
      PartitionedFile[] some = ((FilePartition) partitions[i]).files();
      for (int j = 0; j < some.length; j++) {
        Object task = tasks.get(some[j].toPath());
        if (task == null) throw new IllegalStateException("the partition of " + some[j].toPath() + " is not known");
        files[((Integer) task).intValue()].add(some[j]);
      }
    }
    Partition[] divided = new Partition[files.length];
    for (int i = 0; i < files.length; i++) {
      // Rows come in the order of their file: Spark has put its largest parts first.
      Collections.sort(files[i], new InOrderOfRows());
      divided[i] = new FilePartition(i, (PartitionedFile[]) files[i].toArray(new PartitionedFile[0]));
    }
    return divided;
  }

  public String toString() {
    return division.toString();
  }

  public int hashCode() {
    return division.hashCode();
  }

  public boolean equals(Object other) {
    return other instanceof Groups && ((Groups) other).division.equals(division);
  }
}

/** Parts of files, file by file, from its first rows on. */
class InOrderOfRows implements Comparator {
  public int compare(Object one, Object other) {
    PartitionedFile first = (PartitionedFile) one;
    PartitionedFile second = (PartitionedFile) other;
    int byFile = first.urlEncodedPath().compareTo(second.urlEncodedPath());
    return byFile == 0 ? Long.compare(first.start(), second.start()) : byFile;
  }
}

/** A scan whose tasks read the files of whole groups. */
public class GroupedScan extends SparkPlan {
  private final SparkPlan scan;
  private final Groups groups;
  private final Seq columns;
  private final Seq order;
  private transient RDD divided;

  /** `order` is that of the rows of each task; nothing if there is none. */
  public GroupedScan(SparkPlan scan, Groups groups, Seq columns, Seq order) {
    this.scan = scan;
    this.groups = groups;
    this.columns = columns;
    this.order = order;
  }

  /** Where an RDD keeps its partitions. */
  static java.lang.reflect.Field partitions() {
    try {
      java.lang.reflect.Field field = RDD.class.getDeclaredField("partitions_");
      field.setAccessible(true);
      return field;
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }

  public Seq output() { return scan.output(); }
  public boolean supportsColumnar() { return scan.supportsColumnar(); }
  public Option vectorTypes() { return scan.vectorTypes(); }
  public Partitioning outputPartitioning() { return new GroupedPartitioning(groups.division, columns); }
  public Seq outputOrdering() { return order; }
  public String nodeName() { return "GroupedFiles"; }
  public int productArity() { return 4; }
  public boolean canEqual(Object other) { return other instanceof GroupedScan; }

  public Object productElement(int place) {
    return place == 0 ? (Object) scan : place == 1 ? (Object) groups : place == 2 ? (Object) columns : (Object) order;
  }

  public Seq children() {
    ArrayList one = new ArrayList();
    one.add(scan);
    return Lists.seq(one);
  }

  public TreeNode withNewChildrenInternal(IndexedSeq children) {
    return new GroupedScan((SparkPlan) children.head(), groups, columns, order);
  }

  public RDD doExecute() {
    divide();
    return scan.execute();
  }

  public RDD doExecuteColumnar() {
    divide();
    return scan.executeColumnar();
  }

  /** Before anybody asks for the partitions of the scan, they are those of the groups. */
  private synchronized void divide() {
    RDD files = ((FileSourceScanExec) scan).inputRDD();
    if (files == divided) return;
    try {
      partitions().set(files, groups.divided(files.partitions()));
    } catch (IllegalAccessException e) {
      throw new IllegalStateException(e);
    }
    divided = files;
  }

  /** Tasks may carry the plan that they are of; they have no need of this, and do not know its class. */
  protected Object writeReplace() {
    return scan;
  }

  public int hashCode() {
    return scan.hashCode() * 31 + groups.hashCode();
  }

  public boolean equals(Object other) {
    if (!(other instanceof GroupedScan)) return false;
    GroupedScan that = (GroupedScan) other;
    return scan.equals(that.scan) && groups.equals(that.groups) && columns.equals(that.columns) && order.equals(that.order);
  }
}
