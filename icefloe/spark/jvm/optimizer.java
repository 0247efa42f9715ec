// What Spark's optimizer learns of our scans: which files a query needs, before joins are chosen.
//
// Rules look for relations that carry our mark, and leave all else as it is. Python is asked once for each scan. What few queries
// need is in other texts, of which Python is asked for the entry when a query first does: aggregates from metadata
// (metadata_answers.java), files by the keys of joins (join_keys.java), and files by partitions (partition_groups.java).
package PACKAGE;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.WeakHashMap;
import java.util.function.BiFunction;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionSet;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.ReturnAnswer;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession$;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/** What Python calls. */
public class Entry {
  private static final WeakHashMap KNOWN = new WeakHashMap();

  /** Give the rules to a session, once. */
  public void install(org.apache.spark.sql.classic.SparkSession session) {
    synchronized (KNOWN) {
      if (KNOWN.put(session.extensions(), Boolean.TRUE) == null) {
        session.extensions().injectPreCBORule(new RuleOfSession(new PlannedScans()));
      }
      if (KNOWN.put(session.experimental(), Boolean.TRUE) == null) {
        ArrayList rules = new ArrayList(Plans.list(session.experimental().extraOptimizations()));
        rules.add(new FilesOfJoins());
        session.experimental().extraOptimizations_$eq(Plans.seq(rules));
        ArrayList strategies = new ArrayList(Plans.list(session.experimental().extraStrategies()));
        strategies.add(new GroupedFiles());
        session.experimental().extraStrategies_$eq(Plans.seq(strategies));
      }
    }
  }
}

/** A rule, whichever session asks for it. */
class RuleOfSession extends AbstractFunction1 {
  private final Rule rule;

  RuleOfSession(Rule rule) {
    this.rule = rule;
  }

  public Object apply(Object session) {
    return rule;
  }
}

/** Lists of Scala, and plans. */
class Plans {
  static final String MARK = "icefloe.scan";

  static List list(Seq items) {
    return CollectionConverters.asJava(items);
  }

  static Seq seq(List items) {
    return CollectionConverters.asScala(items).toSeq();
  }

  static boolean isOn(String setting, String unset) {
    return SQLConf.get().getConfString(setting, unset).equalsIgnoreCase("true");
  }

  static boolean isOn() {
    return isOn("spark.icefloe.jvm.enabled", "true");
  }

  /** The plan as it was: a query must not fail by a rule that only makes it faster. */
  static TreeNode without(TreeNode plan, RuntimeException problem) {
    org.slf4j.LoggerFactory.getLogger("icefloe").warn("a query is not planned by icefloe's rules", problem);
    return plan;
  }

  /** The relation of one of our scans, or null. */
  static HadoopFsRelation relation(LogicalPlan plan) {
    if (!(plan instanceof LogicalRelation)) return null;
    LogicalRelation leaf = (LogicalRelation) plan;
    if (leaf.isStreaming() || !(leaf.relation() instanceof HadoopFsRelation)) return null;
    HadoopFsRelation relation = (HadoopFsRelation) leaf.relation();
    return relation.options().contains(MARK) ? relation : null;
  }

  /** The files of a scan that were planned, of the first in a plan; null if there are none. */
  static PlannedFiles planned(LogicalPlan plan) {
    HadoopFsRelation relation = relation(plan);
    if (relation != null) return relation.location() instanceof PlannedFiles ? (PlannedFiles) relation.location() : null;
    List children = list(plan.children());
    for (int i = 0; i < children.size(); i++) {
      PlannedFiles found = planned((LogicalPlan) children.get(i));
      if (found != null) return found;
    }
    return null;
  }

  /** The same relation over other files, with what is known of its rows, or null. */
  static LogicalRelation over(LogicalRelation leaf, FileIndex files, Object table) {
    HadoopFsRelation old = (HadoopFsRelation) leaf.relation();
    Object[] parts = new Object[leaf.productArity()];
    for (int i = 0; i < parts.length; i++) parts[i] = leaf.productElement(i);
    parts[0] = new HadoopFsRelation(
        files, old.partitionSchema(), old.dataSchema(), old.bucketSpec(), old.fileFormat(), old.options(), old.sparkSession());
    if (table != null) parts[2] = Option.apply(table);
    return (LogicalRelation) leaf.makeCopy(parts);
  }

  /** The parts of a condition. */
  static void split(Expression condition, List parts) {
    if (condition instanceof And) {
      split(((And) condition).left(), parts);
      split(((And) condition).right(), parts);
    } else {
      parts.add(condition);
    }
  }
}

/** What a query asks of a relation: filters on constants of files, filters on columns, and how many rows are enough. */
public class Request {
  /** How many keys are considered one by one, and how many gaps between those of more: files are planned while a query waits. */
  private static final int MOST_KEYS = 2000;
  private static final int MOST_GAPS = 63;
  final FileIndex source;
  private final ArrayList onConstants = new ArrayList();
  private final ArrayList onColumns = new ArrayList();
  private final ExpressionSet filters;
  private final int limit;
  /** Whether all conditions of the query are among the filters. */
  private boolean isWhole = true;
  /** Aggregates, as their names and columns; or a column, and values, or ends of ranges, with how many these are. */
  String asked;

  private Request(Request other, String asked) {
    this.source = other.source;
    this.onConstants.addAll(other.onConstants);
    this.onColumns.addAll(other.onColumns);
    this.filters = other.filters;
    this.limit = other.limit;
    this.asked = asked;
  }

  /** The same files, and something to know of them. */
  Request with(String asked) {
    return new Request(this, asked);
  }

  /** The same files, of rows that have one of these values in a column, or are near to one if there are very many. */
  Request ofKeys(String column, Object[] values) {
    HashSet different = new HashSet();
    for (int i = 0; i < values.length; i++) if (values[i] != null) different.add(values[i]);
    boolean areRanges = different.size() > MOST_KEYS && different.iterator().next() instanceof Number;
    List keys = areRanges ? ranges(different) : new ArrayList(different);
    StringBuilder text = new StringBuilder(column).append("\0").append(areRanges ? "ranges" : "values").append("\0").append(keys.size());
    for (int i = 0; i < keys.size(); i++) text.append("\0").append(keys.get(i));
    return new Request(this, text.toString());
  }

  /** The least and the greatest number of each of some ranges that have all numbers, with the widest gaps between them. */
  private static List ranges(HashSet numbers) {
    long[] sorted = new long[numbers.size()];
    int size = 0;
    for (java.util.Iterator each = numbers.iterator(); each.hasNext();) sorted[size++] = ((Number) each.next()).longValue();
    Arrays.sort(sorted);
    long[] gaps = new long[size - 1];
    for (int i = 0; i < gaps.length; i++) {
      gaps[i] = sorted[i + 1] - sorted[i];
      // It may be too large for a long.
      if (gaps[i] < 0) gaps[i] = Long.MAX_VALUE;
    }
    long[] widest = Arrays.copyOf(gaps, gaps.length);
    Arrays.sort(widest);
    int from = Math.max(0, widest.length - MOST_GAPS);
    // Of those that are as wide as the least that is taken, some may be too many.
    int left = 0;
    for (int i = from; i < widest.length && widest[i] == widest[from]; i++) left++;
    ArrayList ends = new ArrayList();
    ends.add(Long.valueOf(sorted[0]));
    for (int i = 0; i < gaps.length; i++) {
      if (gaps[i] < widest[from] || gaps[i] == 1 || (gaps[i] == widest[from] && left-- <= 0)) continue;
      ends.add(Long.valueOf(sorted[i]));
      ends.add(Long.valueOf(sorted[i + 1]));
    }
    ends.add(Long.valueOf(sorted[size - 1]));
    return ends;
  }

  Request(LogicalRelation leaf, List conditions, int limit) {
    this.limit = limit;
    HadoopFsRelation relation = (HadoopFsRelation) leaf.relation();
    this.source = relation.location();
    HashSet constants = new HashSet();
    String[] names = relation.partitionSchema().fieldNames();
    for (int i = 0; i < names.length; i++) constants.add(names[i]);
    ArrayList all = new ArrayList();
    for (int i = 0; i < conditions.size(); i++) {
      Expression condition = (Expression) conditions.get(i);
      if (!condition.deterministic() || SubqueryExpression.hasSubquery(condition)) {
        isWhole = false;
        continue;
      }
      boolean isConstant = true;
      List used = Plans.list(condition.references().toSeq());
      for (int j = 0; j < used.size(); j++) isConstant &= constants.contains(((Attribute) used.get(j)).name());
      (isConstant && !used.isEmpty() ? onConstants : onColumns).add(condition);
      all.add(condition);
    }
    filters = set(Plans.seq(all));
  }

  static ExpressionSet set(Seq expressions) {
    return (ExpressionSet) org.apache.spark.sql.catalyst.expressions.ExpressionSet$.MODULE$.apply(expressions);
  }

  /** The answer of the index of the relation; null if it has none. */
  Object ask(String question) {
    try {
      return source instanceof BiFunction ? ((BiFunction) source).apply(question, this) : null;
    } catch (RuntimeException e) {
      // Python has logged it; Spark can do without, and meets the same problem when it asks for files, if it is one.
      return null;
    }
  }

  public Seq onConstants() {
    return Plans.seq(onConstants);
  }

  public Seq onColumns() {
    return Plans.seq(onColumns);
  }

  public int limit() {
    return limit;
  }

  boolean isWhole() {
    return isWhole;
  }

  public String asked() {
    return asked;
  }

  /** Whether the filters that the files were planned with are all among these conditions. */
  boolean isWithin(List conditions) {
    return limit < 0 && filters.subsetOf(set(Plans.seq(conditions)));
  }

  /** Whether Spark asks for the files with the filters that they were planned with. */
  boolean isSame(Seq partitionFilters, Seq dataFilters) {
    return filters.equals(set((Seq) partitionFilters.concat(dataFilters)));
  }
}

/** Entries of other texts, of which Python is asked once. */
class Texts {
  private static final HashMap KNOWN = new HashMap();

  /** The entry of a text; null if it cannot be used. Whoever asks has a scan of ours at hand. */
  static synchronized Object entry(String name, Request request) {
    if (KNOWN.get(name) == null) KNOWN.put(name, request.with(name).ask("text"));
    return KNOWN.get(name);
  }
}

/** Files that were planned for the filters of one query, and what the rules of other texts ask of them. */
class PlannedFiles implements FileIndex, BiFunction, Supplier {
  final Request request;
  private final Seq directories;
  private final String key;
  private final Seq roots;
  private final boolean isNumbered;
  private final double width;
  private final long size;
  private final int count;
  private boolean isGrouped;
  private Object groups;

  /** `width` is what Spark takes a row to have of bytes, with all columns of the relation. */
  PlannedFiles(Request request, Seq roots, Seq directories, boolean isNumbered, double width) {
    this.request = request;
    this.roots = roots;
    this.isNumbered = isNumbered;
    this.key = request.source.toString() + (request.limit() < 0 ? "" : " limit " + request.limit()) + (isNumbered ? " numbered" : "");
    this.directories = directories;
    this.width = width;
    long bytes = 0;
    long rows = 0;
    int files = 0;
    for (scala.collection.Iterator groups = directories.iterator(); groups.hasNext();) {
      scala.collection.Iterator members = ((PartitionDirectory) groups.next()).files().iterator();
      for (; members.hasNext(); files++) {
        FileStatus file = ((FileStatusWithMetadata) members.next()).fileStatus();
        bytes += file.getLen();
        if (file instanceof Supplier) rows += ((Long) ((Supplier) file).get()).longValue();
      }
    }
    // Rows take more memory than their files if these are packed well, and joins hold rows.
    this.size = Math.max(bytes, (long) (rows * width));
    this.count = files;
  }

  /** How many files there are. */
  public Object get() {
    return Integer.valueOf(count);
  }

  public Object apply(Object about, Object argument) {
    if (about.equals("within")) return Boolean.valueOf(request.isWithin((List) argument));
    if (about.equals("numbered")) return numbered();
    if (about.equals("keys")) return chosen((String) ((Object[]) argument)[0], (Object[]) ((Object[]) argument)[1]);
    if (about.equals("narrowing")) return Boolean.valueOf(request.with((String) argument).ask("narrowing") != null);
    if (about.equals("groups")) return groups();
    throw new IllegalArgumentException("nothing is known about " + about);
  }

  /** By which columns the files are partitioned, and the partition of each; null if they are not, all by the same. */
  private synchronized Object groups() {
    if (!isGrouped) groups = request.ask("groups");
    isGrouped = true;
    return groups;
  }

  /** The numbers of the files that may have a row with one of these values in a column; null if that is not known. */
  private BitSet chosen(String column, Object[] values) {
    Object answer = request.ofKeys(column, values).ask("keys");
    if (answer == null) return null;
    HashSet paths = new HashSet();
    String[] texts = ((String) answer).split("\0");
    for (int i = 0; i < texts.length; i++) if (!texts[i].isEmpty()) paths.add(new Path(texts[i]));
    BitSet chosen = new BitSet();
    int number = 0;
    for (scala.collection.Iterator groups = directories.iterator(); groups.hasNext(); number++) {
      FileStatusWithMetadata file = (FileStatusWithMetadata) ((PartitionDirectory) groups.next()).files().head();
      if (paths.contains(file.getPath())) chosen.set(number);
    }
    return chosen;
  }

  /** The same files, each in a directory of its own whose last constant is the number of the file. */
  private PlannedFiles numbered() {
    ArrayList singles = new ArrayList();
    for (scala.collection.Iterator groups = directories.iterator(); groups.hasNext();) {
      PartitionDirectory group = (PartitionDirectory) groups.next();
      for (scala.collection.Iterator files = group.files().iterator(); files.hasNext();) {
        InternalRow number = new GenericInternalRow(new Object[] {Integer.valueOf(singles.size())});
        InternalRow values = group.values().numFields() == 0 ? number : new JoinedRow(group.values(), number);
        ArrayList one = new ArrayList();
        one.add(files.next());
        singles.add(new PartitionDirectory(values, Plans.seq(one)));
      }
    }
    return new PlannedFiles(request, roots, Plans.seq(singles), true, width);
  }

  public Seq rootPaths() {
    return roots;
  }

  public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
    // Numbers are given when no rule of Spark changes filters any more.
    boolean isCurrent = isNumbered || request.isSame(partitionFilters, dataFilters);
    return isCurrent ? directories : request.source.listFiles(partitionFilters, dataFilters);
  }

  public String[] inputFiles() {
    return request.source.inputFiles();
  }

  public void refresh() {}

  public long sizeInBytes() {
    return size;
  }

  public StructType partitionSchema() {
    return request.source.partitionSchema();
  }

  public boolean isTimeTravel() {
    return false;
  }

  public Option metadataOpsTimeNs() {
    return Option.empty();
  }

  public String toString() {
    return key;
  }

  public int hashCode() {
    return key.hashCode();
  }

  public boolean equals(Object other) {
    return other instanceof PlannedFiles && ((PlannedFiles) other).key.equals(key);
  }
}

/** Plans the files of our scans with the filters of the query, so that Spark knows what is left of them. */
class PlannedScans extends Rule implements BiFunction {
  /** The bytes that Spark adds for each row (EstimationUtils.getSizePerRow). */
  private static final int ROW = 8;

  public TreeNode apply(TreeNode plan) {
    try {
      return Plans.isOn() ? visit((LogicalPlan) plan, null) : (LogicalPlan) plan;
    } catch (RuntimeException e) {
      return Plans.without(plan, e);
    }
  }

  /** `used` are the columns that the plan above needs; all of them if it is null. */
  LogicalPlan visit(LogicalPlan plan, AttributeSet used) {
    if (plan instanceof Aggregate) {
      LogicalPlan answer = answered((Aggregate) plan);
      if (answer != null) return answer;
    }
    if (plan instanceof LocalLimit && ((LocalLimit) plan).limitExpr() instanceof Literal) {
      LogicalPlan leaf = ((LocalLimit) plan).child();
      while (leaf instanceof Project) leaf = ((Project) leaf).child();
      if (Plans.relation(leaf) != null) {
        int limit = ((Integer) ((Literal) ((LocalLimit) plan).limitExpr()).value()).intValue();
        return replaced(plan, leaf, planned((LogicalRelation) leaf, new ArrayList(), limit, null));
      }
    }
    if (plan instanceof Filter && Plans.relation(((Filter) plan).child()) != null) {
      ArrayList conditions = new ArrayList();
      Plans.split(((Filter) plan).condition(), conditions);
      LogicalPlan leaf = ((Filter) plan).child();
      AttributeSet read = used == null ? null : used.$plus$plus(plan.references());
      return replaced(plan, leaf, planned((LogicalRelation) leaf, conditions, -1, read));
    }
    if (Plans.relation(plan) != null) return planned((LogicalRelation) plan, new ArrayList(), -1, used);
    return (LogicalPlan) plan.mapChildren(new VisitChildren(this, plan instanceof Project ? plan.references() : null));
  }

  private LogicalPlan planned(LogicalRelation leaf, List conditions, int limit, AttributeSet used) {
    HadoopFsRelation relation = (HadoopFsRelation) leaf.relation();
    if (relation.location() instanceof PlannedFiles) return leaf;
    Request request = new Request(leaf, conditions, limit);
    Seq directories = (Seq) (limit < 0 ? null : request.ask("limit"));
    if (directories == null) {
      if (limit >= 0) return planned(leaf, conditions, -1, used);
      directories = request.source.listFiles(request.onConstants(), request.onColumns());
    }
    FileIndex files = new PlannedFiles(request, request.source.rootPaths(), directories, false, width(leaf, used));
    SQLConf conf = SQLConf.get();
    Object table = limit < 0 && (conf.cboEnabled() || conf.planStatsEnabled()) ? request.ask("statistics") : null;
    return Plans.over(leaf, files, table);
  }

  /**
   * What Spark is to take all columns of a row for, so that those which are used come to the sum of their own sizes: it divides
   * the size of a relation by columns, and adds some bytes for each row to both.
   */
  private static double width(LogicalRelation leaf, AttributeSet used) {
    long all = ROW;
    long ofUsed = 0;
    List columns = Plans.list(leaf.output());
    for (int i = 0; i < columns.size(); i++) {
      Attribute column = (Attribute) columns.get(i);
      all += column.dataType().defaultSize();
      if (used == null || used.contains(column)) ofUsed += column.dataType().defaultSize();
    }
    return (double) ofUsed * all / (ofUsed + ROW);
  }

  /** The plan that metadata answers; null if it does not. */
  private LogicalPlan answered(Aggregate plan) {
    if (!plan.groupingExpressions().isEmpty() || !Plans.isOn("spark.sql.iceberg.aggregate-push-down.enabled", "true")) return null;
    LogicalPlan leaf = plan.child();
    while (leaf instanceof Project || leaf instanceof Filter) leaf = (LogicalPlan) leaf.children().head();
    if (Plans.relation(leaf) == null) return null;
    Object text = Texts.entry("metadata_answers", new Request((LogicalRelation) leaf, new ArrayList(), -1));
    return text == null ? null : (LogicalPlan) ((BiFunction) text).apply(plan, this);
  }

  /** Aggregates of the rows of a relation that match conditions; null if metadata does not tell them. */
  public Object apply(Object relationAndConditions, Object asked) {
    Object[] parts = (Object[]) relationAndConditions;
    Request request = new Request((LogicalRelation) parts[0], (List) parts[1], -1);
    return !request.isWhole() || !request.onConstants().isEmpty() ? null : request.with((String) asked).ask("aggregates");
  }

  private LogicalPlan replaced(LogicalPlan plan, LogicalPlan old, LogicalPlan leaf) {
    return plan == old ? leaf : (LogicalPlan) plan.mapChildren(new ReplaceLeaf(this, old, leaf));
  }

  LogicalPlan replacedBelow(LogicalPlan plan, LogicalPlan old, LogicalPlan leaf) {
    return replaced(plan, old, leaf);
  }
}

class VisitChildren extends AbstractFunction1 {
  private final PlannedScans rule;
  private final AttributeSet used;

  VisitChildren(PlannedScans rule, AttributeSet used) {
    this.rule = rule;
    this.used = used;
  }

  public Object apply(Object plan) {
    return rule.visit((LogicalPlan) plan, used);
  }
}

class ReplaceLeaf extends AbstractFunction1 {
  private final PlannedScans rule;
  private final LogicalPlan old;
  private final LogicalPlan leaf;

  ReplaceLeaf(PlannedScans rule, LogicalPlan old, LogicalPlan leaf) {
    this.rule = rule;
    this.old = old;
    this.leaf = leaf;
  }

  public Object apply(Object plan) {
    return rule.replacedBelow((LogicalPlan) plan, old, leaf);
  }
}

/**
 * Has the files of one side of a join chosen by the keys of the other, once those are known. It runs after all of Spark's own
 * rules, as Spark recognizes the other side by its plan when it looks for a broadcast to take the keys from.
 */
class FilesOfJoins extends Rule {
  public TreeNode apply(TreeNode plan) {
    SQLConf conf = SQLConf.get();
    try {
      boolean isOn = conf.dynamicPartitionPruningEnabled() && conf.exchangeReuseEnabled() && Plans.isOn();
      PlannedFiles files = isOn && hasJoin((LogicalPlan) plan) ? Plans.planned((LogicalPlan) plan) : null;
      Object text = files == null ? null : Texts.entry("join_keys", files.request);
      return text == null ? plan : (TreeNode) ((UnaryOperator) text).apply(plan);
    } catch (RuntimeException e) {
      return Plans.without(plan, e);
    }
  }

  private static boolean hasJoin(LogicalPlan plan) {
    if (plan instanceof Join) return true;
    List children = Plans.list(plan.children());
    for (int i = 0; i < children.size(); i++) if (hasJoin((LogicalPlan) children.get(i))) return true;
    return false;
  }
}

/**
 * Has tasks read the files of whole partitions where that spares an exchange, if Spark and Iceberg are set to. A strategy is the
 * one place that sees a physical plan before exchanges are put into it.
 */
class GroupedFiles extends SparkStrategy {
  private static final ThreadLocal INSIDE = new ThreadLocal();

  public Seq apply(LogicalPlan plan) {
    ArrayList plans = new ArrayList();
    if (plan instanceof ReturnAnswer && INSIDE.get() == null && isOn()) {
      PlannedFiles files = Plans.planned(plan);
      Object text = files == null ? null : Texts.entry("partition_groups", files.request);
      if (text != null) plans.add(grouped(plan, (UnaryOperator) text));
    }
    return Plans.seq(plans);
  }

  private static boolean isOn() {
    boolean isWanted = Plans.isOn("spark.sql.iceberg.planning.preserve-data-grouping", "false");
    return isWanted && SQLConf.get().v2BucketingEnabled() && Plans.isOn();
  }

  /** The plan that Spark makes, with our scans grouped. */
  private static SparkPlan grouped(LogicalPlan plan, UnaryOperator text) {
    SparkPlan physical;
    INSIDE.set(Boolean.TRUE);
    try {
      physical = (SparkPlan) SparkSession$.MODULE$.active().sessionState().planner().plan(plan).next();
    } finally {
      INSIDE.remove();
    }
    try {
      return (SparkPlan) text.apply(physical);
    } catch (RuntimeException e) {
      return (SparkPlan) Plans.without(physical, e);
    }
  }
}
