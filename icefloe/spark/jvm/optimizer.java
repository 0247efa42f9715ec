// What Spark's optimizer learns of our scans: which files a query needs, before joins are chosen; what metadata alone answers;
// and which files the other side of a join leaves.
//
// Rules look for relations that carry our mark, and leave all else as it is. Python is asked once for each scan, and once for the
// keys of each join that can rule files out.
package PACKAGE;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashSet;
import java.util.List;
import java.util.WeakHashMap;
import java.util.function.BiFunction;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionSet;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningExpression;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.BinaryExpression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.execution.InSubqueryExec;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation$;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.Tuple8;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/** What Python calls. */
public class Entry {
  private static final WeakHashMap KNOWN = new WeakHashMap();

  public Entry() {
    // What differs between versions of Spark.
    FilesOfKeys.pruning();
  }

  /** Give the rules to a session, once. */
  public void install(org.apache.spark.sql.classic.SparkSession session) {
    synchronized (KNOWN) {
      if (KNOWN.put(session.extensions(), Boolean.TRUE) == null) {
        session.extensions().injectPreCBORule(new RuleOfSession(new PlannedScans()));
      }
      if (KNOWN.put(session.experimental(), Boolean.TRUE) == null) {
        ArrayList rules = new ArrayList(Plans.list(session.experimental().extraOptimizations()));
        rules.add(new JoinKeys());
        session.experimental().extraOptimizations_$eq(Plans.seq(rules));
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

  static boolean isOn(String setting) {
    return SQLConf.get().getConfString(setting, "true").equalsIgnoreCase("true");
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

  /** The same relation over other files. */
  static LogicalRelation over(LogicalRelation leaf, FileIndex files, StructType constants, Seq output) {
    HadoopFsRelation old = (HadoopFsRelation) leaf.relation();
    HadoopFsRelation relation = new HadoopFsRelation(
        files, constants, old.dataSchema(), old.bucketSpec(), old.fileFormat(), old.options(), old.sparkSession());
    Object[] parts = new Object[leaf.productArity()];
    for (int i = 0; i < parts.length; i++) parts[i] = leaf.productElement(i);
    parts[0] = relation;
    parts[1] = output;
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

  /** What an attribute of a plan is among those of a node beneath it, through projections; null if it is computed. */
  static AttributeReference below(Expression wanted, LogicalPlan plan, LogicalPlan node) {
    if (!(wanted instanceof AttributeReference)) return null;
    AttributeReference attribute = (AttributeReference) wanted;
    while (plan != node) {
      if (!(plan instanceof Project)) return null;
      Expression source = null;
      List named = list(((Project) plan).projectList());
      for (int i = 0; i < named.size(); i++) {
        NamedExpression one = (NamedExpression) named.get(i);
        if (one.exprId().equals(attribute.exprId())) source = one instanceof Alias ? ((Alias) one).child() : (Expression) one;
      }
      if (!(source instanceof AttributeReference)) return null;
      attribute = (AttributeReference) source;
      plan = ((Project) plan).child();
    }
    return attribute;
  }
}

/** What a query asks of a relation: filters on constants of files, filters on columns, and how many rows are enough. */
public class Request {
  final FileIndex source;
  private final ArrayList onConstants = new ArrayList();
  private final ArrayList onColumns = new ArrayList();
  private final ExpressionSet filters;
  private final int limit;
  /** Whether all conditions of the query are among the filters. */
  private boolean isWhole = true;
  /** Aggregates, as their names and columns; or a column, how many values there are, and all of them. */
  String asked;

  private Request(Request other, String asked) {
    this.source = other.source;
    this.onConstants.addAll(other.onConstants);
    this.onColumns.addAll(other.onColumns);
    this.filters = other.filters;
    this.limit = other.limit;
    this.asked = asked;
  }

  /** The same files, of rows that have one of these values in a column. */
  Request ofKeys(String column, Object[] values) {
    HashSet different = new HashSet();
    for (int i = 0; i < values.length; i++) if (values[i] != null) different.add(values[i].toString());
    StringBuilder text = new StringBuilder(column).append("\0").append(different.size());
    for (java.util.Iterator texts = different.iterator(); texts.hasNext();) text.append("\0").append((String) texts.next());
    return new Request(this, text.toString());
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

/** Files that were planned for the filters of one query. */
class PlannedFiles implements FileIndex {
  final Request request;
  final Seq directories;
  private final String key;
  private final Seq roots;
  private final boolean isNumbered;
  private final long size;
  final int count;

  PlannedFiles(Request request, Seq roots, Seq directories, boolean isNumbered) {
    this.request = request;
    this.roots = roots;
    this.isNumbered = isNumbered;
    this.key = request.source.toString() + (request.limit() < 0 ? "" : " limit " + request.limit()) + (isNumbered ? " numbered" : "");
    this.directories = directories;
    long bytes = 0;
    int files = 0;
    for (scala.collection.Iterator groups = directories.iterator(); groups.hasNext();) {
      scala.collection.Iterator members = ((PartitionDirectory) groups.next()).files().iterator();
      for (; members.hasNext(); files++) bytes += ((FileStatusWithMetadata) members.next()).getLen();
    }
    this.size = bytes;
    this.count = files;
  }

  /** The same files, each in a directory of its own whose last constant is the number of the file. */
  PlannedFiles numbered() {
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
    return new PlannedFiles(request, roots, Plans.seq(singles), true);
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
class PlannedScans extends Rule {
  public TreeNode apply(TreeNode plan) {
    try {
      return Plans.isOn("spark.icefloe.jvm.enabled") ? visit((LogicalPlan) plan) : (LogicalPlan) plan;
    } catch (RuntimeException e) {
      return Plans.without(plan, e);
    }
  }

  LogicalPlan visit(LogicalPlan plan) {
    if (plan instanceof Aggregate) {
      LogicalPlan answer = answered((Aggregate) plan);
      if (answer != null) return answer;
    }
    if (plan instanceof LocalLimit && ((LocalLimit) plan).limitExpr() instanceof Literal) {
      LogicalPlan leaf = ((LocalLimit) plan).child();
      while (leaf instanceof Project) leaf = ((Project) leaf).child();
      if (Plans.relation(leaf) != null) {
        int limit = ((Integer) ((Literal) ((LocalLimit) plan).limitExpr()).value()).intValue();
        return replaced(plan, leaf, planned((LogicalRelation) leaf, new ArrayList(), limit));
      }
    }
    if (plan instanceof Filter && Plans.relation(((Filter) plan).child()) != null) {
      ArrayList conditions = new ArrayList();
      Plans.split(((Filter) plan).condition(), conditions);
      LogicalPlan leaf = ((Filter) plan).child();
      return replaced(plan, leaf, planned((LogicalRelation) leaf, conditions, -1));
    }
    if (Plans.relation(plan) != null) return planned((LogicalRelation) plan, new ArrayList(), -1);
    return (LogicalPlan) plan.mapChildren(new VisitChildren(this));
  }

  private LogicalPlan planned(LogicalRelation leaf, List conditions, int limit) {
    HadoopFsRelation relation = (HadoopFsRelation) leaf.relation();
    if (relation.location() instanceof PlannedFiles) return leaf;
    Request request = new Request(leaf, conditions, limit);
    Seq directories = (Seq) (limit < 0 ? null : request.ask("limit"));
    if (directories == null) {
      if (limit >= 0) return planned(leaf, conditions, -1);
      directories = request.source.listFiles(request.onConstants(), request.onColumns());
    }
    FileIndex files = new PlannedFiles(request, request.source.rootPaths(), directories, false);
    return Plans.over(leaf, files, relation.partitionSchema(), leaf.output());
  }

  private LogicalPlan replaced(LogicalPlan plan, LogicalPlan old, LogicalPlan leaf) {
    return plan == old ? leaf : (LogicalPlan) plan.mapChildren(new ReplaceLeaf(this, old, leaf));
  }

  LogicalPlan replacedBelow(LogicalPlan plan, LogicalPlan old, LogicalPlan leaf) {
    return replaced(plan, old, leaf);
  }

  // -- aggregates of whole tables

  private LogicalPlan answered(Aggregate plan) {
    if (!plan.groupingExpressions().isEmpty() || !Plans.isOn("spark.sql.iceberg.aggregate-push-down.enabled")) return null;
    LogicalPlan leaf = plan.child();
    while (leaf instanceof Project) leaf = ((Project) leaf).child();
    LogicalPlan scan = leaf;
    ArrayList conditions = new ArrayList();
    if (leaf instanceof Filter) {
      Plans.split(((Filter) leaf).condition(), conditions);
      leaf = ((Filter) leaf).child();
    }
    if (Plans.relation(leaf) == null) return null;
    ArrayList calls = new ArrayList();
    List results = Plans.list(plan.aggregateExpressions());
    for (int i = 0; i < results.size(); i++) collect((Expression) results.get(i), calls);
    StringBuilder asked = new StringBuilder();
    for (int i = 0; i < calls.size(); i++) {
      String text = asked((AggregateExpression) calls.get(i), plan.child(), scan);
      if (text == null) return null;
      asked.append(i == 0 ? "" : "\0").append(text);
    }
    Request request = new Request((LogicalRelation) leaf, conditions, -1);
    if (calls.isEmpty() || !request.isWhole() || !request.onConstants().isEmpty()) return null;
    request.asked = asked.toString();
    String answer = (String) request.ask("aggregates");
    if (answer == null) return null;
    String[] texts = answer.split("\0", -1);
    ArrayList values = new ArrayList();
    for (int i = 0; i < texts.length; i++) values.add(literal(texts[i], ((Expression) calls.get(i)).dataType()));
    ArrayList columns = new ArrayList();
    for (int i = 0; i < results.size(); i++) columns.add(new ReplaceCalls(calls, values).apply(results.get(i)));
    return new Project(Plans.seq(columns), new OneRowRelation());
  }

  private static void collect(Expression expression, List calls) {
    if (expression instanceof AggregateExpression) {
      calls.add(expression);
      return;
    }
    List children = Plans.list(expression.children());
    for (int i = 0; i < children.size(); i++) collect((Expression) children.get(i), calls);
  }

  /** An aggregate as its name and its column; null if it is not one that metadata may answer. */
  private static String asked(AggregateExpression call, LogicalPlan plan, LogicalPlan scan) {
    AggregateFunction function = call.aggregateFunction();
    if (call.isDistinct() || call.filter().isDefined()) return null;
    String name = function instanceof Count ? "count" : function instanceof Min ? "min" : function instanceof Max ? "max" : null;
    if (name == null || function.children().size() != 1) return null;
    Expression argument = (Expression) Plans.list(function.children()).get(0);
    if (argument instanceof Literal) return name.equals("count") && ((Literal) argument).value() != null ? name : null;
    AttributeReference column = Plans.below(argument, plan, scan);
    return column == null ? null : name + ":" + column.name();
  }

  /** A value of a type from its text; an empty one is null. */
  private static Literal literal(String text, DataType type) {
    Object value = null;
    if (!text.isEmpty()) {
      String digits = text.substring(1);
      if (type.equals(DataTypes.BooleanType)) value = Boolean.valueOf(digits);
      else if (type.equals(DataTypes.IntegerType) || type.equals(DataTypes.DateType)) value = Integer.valueOf(digits);
      else if (type.equals(DataTypes.LongType) || type.equals(DataTypes.TimestampType) || type.equals(DataTypes.TimestampNTZType)) value = Long.valueOf(digits);
      else if (type.equals(DataTypes.FloatType)) value = Float.valueOf(digits);
      else if (type.equals(DataTypes.DoubleType)) value = Double.valueOf(digits);
      else if (type.equals(DataTypes.StringType)) value = UTF8String.fromString(digits);
      else if (type instanceof DecimalType) {
        value = Decimal.apply(new java.math.BigDecimal(digits), ((DecimalType) type).precision(), ((DecimalType) type).scale());
      } else throw new IllegalArgumentException("no value of type " + type + " comes from metadata");
    }
    return new Literal(value, type);
  }
}

class VisitChildren extends AbstractFunction1 {
  private final PlannedScans rule;

  VisitChildren(PlannedScans rule) {
    this.rule = rule;
  }

  public Object apply(Object plan) {
    return rule.visit((LogicalPlan) plan);
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

/** An expression with values in the place of aggregates. */
class ReplaceCalls extends AbstractFunction1 {
  private final List calls;
  private final List values;

  ReplaceCalls(List calls, List values) {
    this.calls = calls;
    this.values = values;
  }

  public Object apply(Object expression) {
    for (int i = 0; i < calls.size(); i++) if (calls.get(i) == expression) return values.get(i);
    return ((Expression) expression).mapChildren(this);
  }
}

// -- filters from joins

/**
 * Has the files of one side of a join chosen by the keys of the other, once those are known. It runs after all of Spark's own
 * rules, as Spark recognizes the other side by its plan when it looks for a broadcast to take the keys from.
 */
class JoinKeys extends Rule {
  static final String ORDINAL = "__icefloe_ordinal";
  private static final TreeNodeTag DONE = new TreeNodeTag("icefloe.join");

  public TreeNode apply(TreeNode plan) {
    SQLConf conf = SQLConf.get();
    boolean isOn = conf.dynamicPartitionPruningEnabled() && conf.exchangeReuseEnabled() && Plans.isOn("spark.icefloe.jvm.enabled");
    try {
      return isOn ? visit((LogicalPlan) plan) : (LogicalPlan) plan;
    } catch (RuntimeException e) {
      return Plans.without(plan, e);
    }
  }

  LogicalPlan visit(LogicalPlan plan) {
    LogicalPlan visited = (LogicalPlan) plan.mapChildren(new VisitJoins(this));
    if (!(visited instanceof Join) || visited.getTagValue(DONE).isDefined()) return visited;
    Option keys = ExtractEquiJoinKeys$.MODULE$.unapply((Join) visited);
    if (keys.isEmpty()) return visited;
    Tuple8 parts = (Tuple8) keys.get();
    List leftKeys = Plans.list((Seq) parts._2());
    List rightKeys = Plans.list((Seq) parts._3());
    Join join = (Join) visited;
    LogicalPlan left = join.left();
    LogicalPlan right = join.right();
    String kind = join.joinType().toString();
    boolean ofLeft = kind.equals("Inner") || kind.equals("LeftSemi") || kind.equals("RightOuter");
    boolean ofRight = kind.equals("Inner") || kind.equals("LeftSemi") || kind.equals("LeftOuter");
    for (int i = 0; i < leftKeys.size(); i++) {
      if (ofLeft && isSelective(join.right())) left = pruned(left, (Expression) leftKeys.get(i), join.right(), rightKeys, i);
      if (ofRight && left == join.left() && isSelective(join.left())) {
        right = pruned(right, (Expression) rightKeys.get(i), join.left(), leftKeys, i);
      }
    }
    if (left == join.left() && right == join.right()) return visited;
    LogicalPlan narrowed = (LogicalPlan) join.makeCopy(new Object[] {left, right, join.joinType(), join.condition(), join.hint()});
    narrowed.setTagValue(DONE, Boolean.TRUE);
    return narrowed;
  }

  /** Whether a side has a filter that says more than that columns are not null. */
  private static boolean isSelective(LogicalPlan plan) {
    if (plan.isStreaming()) return false;
    if (plan instanceof Filter) {
      ArrayList parts = new ArrayList();
      Plans.split(((Filter) plan).condition(), parts);
      for (int i = 0; i < parts.size(); i++) if (!(parts.get(i) instanceof IsNotNull) && !(parts.get(i) instanceof FilesOfKeys)) return true;
    }
    List children = Plans.list(plan.children());
    for (int i = 0; i < children.size(); i++) if (isSelective((LogicalPlan) children.get(i))) return true;
    return false;
  }

  private LogicalPlan pruned(LogicalPlan plan, Expression key, LogicalPlan other, List keys, int index) {
    Expression source = key instanceof Cast ? ((Cast) key).child() : key;
    // A wider number is the same number.
    boolean isPlain = source == key || (source.dataType().equals(DataTypes.IntegerType) && key.dataType().equals(DataTypes.LongType));
    if (!isPlain || !(source instanceof AttributeReference) || !other.deterministic()) return plan;
    LogicalPlan pruned = below(plan, (AttributeReference) source, other, Plans.seq(keys), index);
    return pruned == null ? plan : pruned;
  }

  /** The plan with files chosen where the attribute comes from; null if they cannot be. Rows without a match may be left out. */
  private LogicalPlan below(LogicalPlan plan, AttributeReference key, LogicalPlan other, Seq keys, int index) {
    if (plan instanceof Filter && Plans.relation(((Filter) plan).child()) != null) {
      return chosen((LogicalRelation) ((Filter) plan).child(), ((Filter) plan).condition(), key, other, keys, index);
    }
    if (Plans.relation(plan) != null) return chosen((LogicalRelation) plan, null, key, other, keys, index);
    if (plan instanceof Project) {
      AttributeReference source = Plans.below(key, plan, ((Project) plan).child());
      return source == null ? null : with(plan, 0, below(((Project) plan).child(), source, other, keys, index));
    }
    if (plan instanceof Filter) return with(plan, 0, below(((Filter) plan).child(), key, other, keys, index));
    if (plan instanceof Aggregate) {
      boolean isKey = ((Aggregate) plan).groupingExpressions().contains(key);
      return isKey ? with(plan, 0, below(((Aggregate) plan).child(), key, other, keys, index)) : null;
    }
    if (plan instanceof Union) {
      List children = Plans.list(plan.children());
      int place = place(plan, key);
      LogicalPlan union = null;
      for (int i = 0; i < children.size() && place >= 0; i++) {
        LogicalPlan child = (LogicalPlan) children.get(i);
        Object attribute = Plans.list(child.output()).get(place);
        if (!(attribute instanceof AttributeReference)) continue;
        LogicalPlan narrowed = with(union == null ? plan : union, i, below(child, (AttributeReference) attribute, other, keys, index));
        if (narrowed != null) union = narrowed;
      }
      return union;
    }
    if (plan instanceof Join) {
      String kind = ((Join) plan).joinType().toString();
      boolean keepsLeft = kind.equals("Inner") || kind.equals("Cross") || kind.equals("LeftOuter") || kind.equals("LeftSemi") || kind.equals("LeftAnti");
      if (keepsLeft && place(((Join) plan).left(), key) >= 0) {
        return with(plan, 0, below(((Join) plan).left(), key, other, keys, index));
      }
      boolean keepsRight = kind.equals("Inner") || kind.equals("Cross") || kind.equals("RightOuter");
      if (keepsRight && place(((Join) plan).right(), key) >= 0) {
        return with(plan, 1, below(((Join) plan).right(), key, other, keys, index));
      }
    }
    return null;
  }

  private static int place(LogicalPlan plan, AttributeReference key) {
    List output = Plans.list(plan.output());
    for (int i = 0; i < output.size(); i++) if (((Attribute) output.get(i)).exprId().equals(key.exprId())) return i;
    return -1;
  }

  private static LogicalPlan with(LogicalPlan plan, int place, LogicalPlan child) {
    if (child == null) return null;
    ArrayList children = new ArrayList(Plans.list(plan.children()));
    children.set(place, child);
    return (LogicalPlan) plan.withNewChildren(Plans.seq(children));
  }

  /** The scan with each of its files in a directory of its own, by a number, and a filter on that number. */
  private LogicalPlan chosen(LogicalRelation leaf, Expression condition, AttributeReference key, LogicalPlan other, Seq keys, int index) {
    HadoopFsRelation relation = (HadoopFsRelation) leaf.relation();
    if (!(relation.location() instanceof PlannedFiles)) return null;
    PlannedFiles files = (PlannedFiles) relation.location();
    ArrayList conditions = new ArrayList();
    if (condition != null) Plans.split(condition, conditions);
    // The files must be those of filters that the query still has.
    if (!FilesOfKeys.isUsable(key.dataType()) || files.count < 2 || !files.request.isWithin(conditions)) return null;
    StructType constants = relation.partitionSchema();
    ArrayList output = new ArrayList(Plans.list(leaf.output()));
    AttributeReference ordinal = null;
    for (int i = 0; i < output.size(); i++) {
      if (((Attribute) output.get(i)).name().equals(ORDINAL)) ordinal = (AttributeReference) output.get(i);
    }
    LogicalRelation numbered = leaf;
    if (ordinal == null) {
      constants = constants.add(ORDINAL, DataTypes.IntegerType, false);
      files = files.numbered();
      LogicalRelation plain = LogicalRelation$.MODULE$.apply(new HadoopFsRelation(files, new StructType().add(ORDINAL, DataTypes.IntegerType, false),
          new StructType(), Option.empty(), relation.fileFormat(), relation.options(), relation.sparkSession()), false);
      ordinal = (AttributeReference) Plans.list(plain.output()).get(0);
      output.add(ordinal);
      numbered = Plans.over(leaf, files, constants, Plans.seq(output));
    }
    Expression of = FilesOfKeys.subquery((Expression) Plans.list(keys).get(index), other, keys, index);
    Expression filter = new FilesOfKeys(of, ordinal, files, key.name());
    return new Project(leaf.output(), new Filter(condition == null ? filter : new And(condition, filter), numbered));
  }
}

class VisitJoins extends AbstractFunction1 {
  private final JoinKeys rule;

  VisitJoins(JoinKeys rule) {
    this.rule = rule;
  }

  public Object apply(Object plan) {
    return rule.visit((LogicalPlan) plan);
  }
}

/** Whether a file, by its number, may have a row with a key of the other side of a join. Python is asked once, for all files. */
public class FilesOfKeys extends BinaryExpression implements CodegenFallback, java.io.Serializable {
  private final Expression keys;
  private final Expression ordinal;
  private final PlannedFiles files;
  private final String column;
  private transient boolean isAsked;
  private transient BitSet kept;

  FilesOfKeys(Expression keys, Expression ordinal, PlannedFiles files, String column) {
    this.keys = keys;
    this.ordinal = ordinal;
    this.files = files;
    this.column = column;
  }

  static java.lang.reflect.Constructor pruning() {
    java.lang.reflect.Constructor constructor = DynamicPruningSubquery.class.getConstructors()[0];
    int count = constructor.getParameterTypes().length;
    if (count != 7 && count != 8) throw new IllegalStateException("DynamicPruningSubquery has " + count + " parts");
    return constructor;
  }

  /** Spark's expression for the keys of the other side, if it is broadcast. */
  static Expression subquery(Expression key, LogicalPlan other, Seq keys, int index) {
    ArrayList indices = new ArrayList();
    indices.add(Integer.valueOf(index));
    Object[] all = new Object[] {
      new Literal(null, key.dataType()), other, keys, Plans.seq(indices), Boolean.TRUE,
      org.apache.spark.sql.catalyst.expressions.NamedExpression$.MODULE$.newExprId(), Option.empty(), Option.empty()
    };
    java.lang.reflect.Constructor constructor = pruning();
    try {
      return (Expression) constructor.newInstance(java.util.Arrays.copyOf(all, constructor.getParameterTypes().length));
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Whether keys of a type are whole numbers or texts. */
  static boolean isUsable(DataType type) {
    return isNumber(type) || type.equals(DataTypes.StringType);
  }

  private static boolean isNumber(DataType type) {
    return type.equals(DataTypes.IntegerType) || type.equals(DataTypes.LongType) || type.equals(DataTypes.DateType)
        || type.equals(DataTypes.TimestampType) || type.equals(DataTypes.TimestampNTZType);
  }

  public Expression left() { return keys; }
  public Expression right() { return ordinal; }
  public boolean nullable() { return false; }
  public DataType dataType() { return DataTypes.BooleanType; }
  public String prettyName() { return "files_of_keys"; }
  public String toString() { return "files of " + column + " in " + keys; }
  public int productArity() { return 4; }
  public boolean canEqual(Object other) { return other instanceof FilesOfKeys; }

  public Object productElement(int place) {
    return place == 0 ? (Object) keys : place == 1 ? (Object) ordinal : place == 2 ? (Object) files : (Object) column;
  }

  public boolean equals(Object other) {
    if (!(other instanceof FilesOfKeys)) return false;
    FilesOfKeys that = (FilesOfKeys) other;
    return keys.equals(that.keys) && ordinal.equals(that.ordinal) && files.equals(that.files) && column.equals(that.column);
  }

  /** Tasks may carry the plan that they are of; they have no need of this, and do not know its class. */
  protected Object writeReplace() {
    return Literal$.MODULE$.TrueLiteral();
  }

  public TreeNode withNewChildrenInternal(TreeNode left, TreeNode right) {
    return new FilesOfKeys((Expression) left, (Expression) right, files, column);
  }

  public ExprCode doGenCode(CodegenContext context, ExprCode code) {
    // Janino calls no static method of an interface.
    try {
      Class[] kinds = new Class[] {CodegenFallback.class, CodegenContext.class, ExprCode.class};
      return (ExprCode) CodegenFallback.class.getMethod("doGenCode$", kinds).invoke(null, new Object[] {this, context, code});
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }

  public Object eval(InternalRow row) {
    BitSet chosen = chosen();
    return Boolean.valueOf(chosen == null || chosen.get(((Integer) ordinal.eval(row)).intValue()));
  }

  private synchronized BitSet chosen() {
    if (!isAsked) {
      Expression known = keys instanceof DynamicPruningExpression ? ((DynamicPruningExpression) keys).child() : keys;
      Option values = known instanceof InSubqueryExec ? ((InSubqueryExec) known).values() : Option.empty();
      if (values.isDefined()) kept = choose((Object[]) values.get());
      isAsked = true;
    }
    return kept;
  }

  private BitSet choose(Object[] values) {
    Object answer = files.request.ofKeys(column, values).ask("keys");
    if (answer == null) return null;
    HashSet paths = new HashSet();
    String[] texts = ((String) answer).split("\0");
    for (int i = 0; i < texts.length; i++) if (!texts[i].isEmpty()) paths.add(new Path(texts[i]));
    BitSet chosen = new BitSet();
    int number = 0;
    for (scala.collection.Iterator groups = files.directories.iterator(); groups.hasNext(); number++) {
      FileStatusWithMetadata file = (FileStatusWithMetadata) ((PartitionDirectory) groups.next()).files().head();
      if (paths.contains(file.getPath())) chosen.set(number);
    }
    return chosen;
  }
}
