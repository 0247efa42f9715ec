// The rows of micro-batches in the plans of writes: Spark would copy each of them before a write does anything with it.
//
// A micro-batch that is written becomes a plan of its own over rows, which knows nothing of the query. Where the query only reads,
// filters and selects, its physical plan takes the place of the rows, and is compiled together with what the write adds.
package PACKAGE;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.WeakHashMap;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.ColumnarToRowExec;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.InputAdapter;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkPlan$;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import scala.Option;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** What Python calls. */
public class Entry {
  private static final WeakHashMap QUERIES = new WeakHashMap();
  private static final WeakHashMap SESSIONS = new WeakHashMap();

  /** Let a session plan the rows of a micro-batch, as they stand in a plan, by the query that they are of. */
  public void plan(SparkSession session, LogicalPlan rows, Dataset batch) {
    synchronized (QUERIES) {
      QUERIES.put(((LogicalRDD) rows).rdd(), batch.queryExecution().executedPlan());
      if (SESSIONS.put(session.experimental(), Boolean.TRUE) != null) return;
    }
    ArrayList strategies = new ArrayList(list(session.experimental().extraStrategies()));
    strategies.add(new BatchRows());
    session.experimental().extraStrategies_$eq(seq(strategies));
  }

  /** The physical plan that rows are of, or null. */
  static SparkPlan query(LogicalRDD rows) {
    synchronized (QUERIES) {
      return (SparkPlan) QUERIES.get(rows.rdd());
    }
  }

  static List list(Seq items) {
    return CollectionConverters.asJava(items);
  }

  static Seq seq(List items) {
    return CollectionConverters.asScala(items).toSeq();
  }
}

class BatchRows extends SparkStrategy {
  /** Nodes that filter and select, by which rows stay in their tasks. */
  private static final HashSet PLAIN = new HashSet(Arrays.asList(new Object[] {
    ColumnarToRowExec.class, FilterExec.class, ProjectExec.class
  }));

  public Seq apply(LogicalPlan plan) {
    ArrayList found = new ArrayList();
    SparkPlan query = plan instanceof LogicalRDD ? Entry.query((LogicalRDD) plan) : null;
    if (query != null && isPlain(query)) {
      SparkPlan named = named(stripped(query), Entry.list(plan.output()));
      if (named != null) found.add(named);
    }
    return Entry.seq(found);
  }

  private static boolean isPlain(SparkPlan plan) {
    List children = Entry.list(plan.children());
    boolean isKnown = children.isEmpty() || isAround(plan) || PLAIN.contains(plan.getClass());
    if (!isKnown || !plan.subqueries().isEmpty()) return false;
    for (int i = 0; i < children.size(); i++) if (!isPlain((SparkPlan) children.get(i))) return false;
    return true;
  }

  private static boolean isAround(SparkPlan plan) {
    return plan instanceof WholeStageCodegenExec || plan instanceof InputAdapter;
  }

  /** The plan without the marks of what is compiled together. */
  private static SparkPlan stripped(SparkPlan plan) {
    List children = Entry.list(plan.children());
    if (isAround(plan)) return stripped((SparkPlan) children.get(0));
    // Adaptive execution takes no plan that belongs to a stream.
    plan.unsetTagValue(SparkPlan$.MODULE$.LOGICAL_PLAN_TAG());
    plan.unsetTagValue(SparkPlan$.MODULE$.LOGICAL_PLAN_INHERITED_TAG());
    if (children.isEmpty()) return new SourceOfBatch(plan);
    ArrayList inner = new ArrayList();
    for (int i = 0; i < children.size(); i++) inner.add(stripped((SparkPlan) children.get(i)));
    return (SparkPlan) plan.withNewChildren(Entry.seq(inner));
  }

  /** The plan with the columns that rows have in the plan of a write; null if they are not the same. */
  private static SparkPlan named(SparkPlan plan, List columns) {
    List own = Entry.list(plan.output());
    if (own.size() != columns.size()) return null;
    ArrayList named = new ArrayList();
    for (int i = 0; i < own.size(); i++) {
      Attribute column = (Attribute) columns.get(i);
      Attribute from = (Attribute) own.get(i);
      if (!column.dataType().equals(from.dataType()) || (from.nullable() && !column.nullable())) return null;
      boolean isSame = from.exprId().equals(column.exprId()) && from.name().equals(column.name());
      named.add(isSame ? (Object) from : new Alias(
          from, column.name(), column.exprId(), column.qualifier(), Option.apply(column.metadata()), Entry.seq(new ArrayList())));
    }
    return new ProjectExec(Entry.seq(named), plan);
  }
}

/** A leaf of a query, the very same one in all copies of a plan: the query's progress shows the rows that it has counted. */
public class SourceOfBatch extends SparkPlan {
  private final SparkPlan leaf;

  public SourceOfBatch(SparkPlan leaf) {
    this.leaf = leaf;
  }

  public Seq output() { return leaf.output(); }
  public boolean supportsColumnar() { return leaf.supportsColumnar(); }
  public boolean supportsRowBased() { return leaf.supportsRowBased(); }
  public Option vectorTypes() { return leaf.vectorTypes(); }
  public Partitioning outputPartitioning() { return leaf.outputPartitioning(); }
  public RDD doExecute() { return leaf.execute(); }
  public RDD doExecuteColumnar() { return leaf.executeColumnar(); }
  public String nodeName() { return "MicroBatch"; }
  public Seq children() { return Entry.seq(new ArrayList()); }
  public TreeNode withNewChildrenInternal(IndexedSeq children) { return this; }
  public int productArity() { return 1; }
  public Object productElement(int place) { return leaf; }
  public boolean canEqual(Object other) { return other instanceof SourceOfBatch; }
  public int hashCode() { return System.identityHashCode(leaf); }
  public boolean equals(Object other) { return other instanceof SourceOfBatch && ((SourceOfBatch) other).leaf == leaf; }

  /** Tasks may carry the plan that they are of; they have no need of this, and do not know its class. */
  protected Object writeReplace() {
    return leaf;
  }
}
