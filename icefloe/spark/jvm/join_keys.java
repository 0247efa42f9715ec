// Which files of a scan the other side of a join leaves, once that is read.
//
// The index of such a scan (PlannedFiles in optimizer.java) says how many files it has, and answers by what it is asked about: whether
// it is "within" conditions, "narrowing" by a column likely, its files "numbered", and which of those may have "keys".
package PACKAGE;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.function.BiFunction;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BinaryExpression;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningExpression;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.execution.InSubqueryExec;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation$;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.Tuple8;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/** What the rule of optimizer.java calls with a plan. */
public class Entry implements UnaryOperator {
  public Entry() {
    // What differs between versions of Spark.
    FilesOfKeys.pruning();
  }

  public Object apply(Object plan) {
    return new JoinKeys().visit((LogicalPlan) plan);
  }
}

/** Lists of Scala, and relations of ours. */
class Plans {
  static List list(Seq items) {
    return CollectionConverters.asJava(items);
  }

  static Seq seq(List items) {
    return CollectionConverters.asScala(items).toSeq();
  }

  /** The relation of one of our scans, or null. */
  static HadoopFsRelation relation(LogicalPlan plan) {
    if (!(plan instanceof LogicalRelation) || !(((LogicalRelation) plan).relation() instanceof HadoopFsRelation)) return null;
    HadoopFsRelation relation = (HadoopFsRelation) ((LogicalRelation) plan).relation();
    return relation.options().contains("icefloe.scan") ? relation : null;
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

/**
 * Has the files of one side of a join chosen by the keys of the other, once those are known. It runs after all of Spark's own
 * rules, as Spark recognizes the other side by its plan when it looks for a broadcast to take the keys from.
 */
class JoinKeys {
  static final String ORDINAL = "__icefloe_ordinal";
  private static final TreeNodeTag DONE = new TreeNodeTag("icefloe.join");

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
    // Keys come from a broadcast, and Spark broadcasts no side of a join whose rows are all kept.
    boolean ofLeft = (kind.equals("Inner") || kind.equals("LeftSemi")) && isSelective(right) && isBroadcast(right, join);
    boolean ofRight = kind.equals("Inner") && isSelective(left) && isBroadcast(left, join);
    for (int i = 0; i < leftKeys.size(); i++) {
      if (ofLeft) left = pruned(left, (Expression) leftKeys.get(i), join.right(), rightKeys, i);
      if (ofRight && left == join.left()) right = pruned(right, (Expression) rightKeys.get(i), join.left(), leftKeys, i);
    }
    if (left == join.left() && right == join.right()) return visited;
    LogicalPlan narrowed = (LogicalPlan) join.makeCopy(new Object[] {left, right, join.joinType(), join.condition(), join.hint()});
    narrowed.setTagValue(DONE, Boolean.TRUE);
    return narrowed;
  }

  /** Whether Spark may send a side to all tasks: by its size, or since somebody asks for it. */
  private static boolean isBroadcast(LogicalPlan side, Join join) {
    if (join.hint().leftHint().isDefined() || join.hint().rightHint().isDefined()) return true;
    SQLConf conf = SQLConf.get();
    Option adaptive = (Option) conf.getConf(SQLConf.ADAPTIVE_AUTO_BROADCASTJOIN_THRESHOLD());
    long most = conf.autoBroadcastJoinThreshold();
    if (conf.adaptiveExecutionEnabled() && adaptive.isDefined()) most = Math.max(most, ((Long) adaptive.get()).longValue());
    return side.stats().sizeInBytes().compare(scala.math.BigInt.apply(most)) <= 0;
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
      AttributeReference source = source(key, (Project) plan);
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

  /** What an attribute of a projection is beneath it; null if it is computed. */
  private static AttributeReference source(AttributeReference wanted, Project plan) {
    Expression source = null;
    List named = Plans.list(plan.projectList());
    for (int i = 0; i < named.size(); i++) {
      NamedExpression one = (NamedExpression) named.get(i);
      if (one.exprId().equals(wanted.exprId())) source = one instanceof Alias ? ((Alias) one).child() : (Expression) one;
    }
    return source instanceof AttributeReference ? (AttributeReference) source : null;
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
    if (!(relation.location() instanceof Supplier)) return null;
    int count = ((Integer) ((Supplier) relation.location()).get()).intValue();
    BiFunction files = (BiFunction) relation.location();
    ArrayList conditions = new ArrayList();
    if (condition != null) Plans.split(condition, conditions);
    // The files must be those of filters that the query still has.
    if (!FilesOfKeys.isUsable(key.dataType()) || count < 2) return null;
    if (!((Boolean) files.apply("within", conditions)).booleanValue()) return null;
    if (!((Boolean) files.apply("narrowing", key.name())).booleanValue()) return null;
    StructType constants = relation.partitionSchema();
    ArrayList output = new ArrayList(Plans.list(leaf.output()));
    AttributeReference ordinal = null;
    for (int i = 0; i < output.size(); i++) {
      if (((Attribute) output.get(i)).name().equals(ORDINAL)) ordinal = (AttributeReference) output.get(i);
    }
    LogicalRelation numbered = leaf;
    if (ordinal == null) {
      constants = constants.add(ORDINAL, DataTypes.IntegerType, false);
      files = (BiFunction) files.apply("numbered", null);
      LogicalRelation plain = LogicalRelation$.MODULE$.apply(new HadoopFsRelation((FileIndex) files, new StructType().add(ORDINAL, DataTypes.IntegerType, false),
          new StructType(), Option.empty(), relation.fileFormat(), relation.options(), relation.sparkSession()), false);
      ordinal = (AttributeReference) Plans.list(plain.output()).get(0);
      output.add(ordinal);
      numbered = over(leaf, (FileIndex) files, constants, Plans.seq(output));
    }
    Expression of = FilesOfKeys.subquery((Expression) Plans.list(keys).get(index), other, keys, index);
    Expression filter = new FilesOfKeys(of, ordinal, files, key.name());
    return new Project(leaf.output(), new Filter(condition == null ? filter : new And(condition, filter), numbered));
  }

  /** The same relation over other files. */
  private static LogicalRelation over(LogicalRelation leaf, FileIndex files, StructType constants, Seq output) {
    HadoopFsRelation old = (HadoopFsRelation) leaf.relation();
    Object[] parts = new Object[leaf.productArity()];
    for (int i = 0; i < parts.length; i++) parts[i] = leaf.productElement(i);
    parts[0] = new HadoopFsRelation(
        files, constants, old.dataSchema(), old.bucketSpec(), old.fileFormat(), old.options(), old.sparkSession());
    parts[1] = output;
    return (LogicalRelation) leaf.makeCopy(parts);
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
  private final BiFunction files;
  private final String column;
  private transient boolean isAsked;
  private transient BitSet kept;

  FilesOfKeys(Expression keys, Expression ordinal, BiFunction files, String column) {
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
      if (values.isDefined()) kept = (BitSet) files.apply("keys", new Object[] {column, values.get()});
      isAsked = true;
    }
    return kept;
  }
}
