// Aggregates of whole tables that metadata answers, as a plan without a scan.
package PACKAGE;

import java.util.ArrayList;
import java.util.List;
import java.util.function.BiFunction;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/** What the rule of optimizer.java calls with an aggregate over a scan, and with what asks metadata. */
public class Entry implements BiFunction {
  public Object apply(Object plan, Object metadata) {
    return answered((Aggregate) plan, (BiFunction) metadata);
  }

  private static List list(Seq items) {
    return CollectionConverters.asJava(items);
  }

  private static Seq seq(List items) {
    return CollectionConverters.asScala(items).toSeq();
  }

  /** The parts of a condition. */
  private static void split(Expression condition, List parts) {
    if (condition instanceof And) {
      split(((And) condition).left(), parts);
      split(((And) condition).right(), parts);
    } else {
      parts.add(condition);
    }
  }

  private LogicalPlan answered(Aggregate plan, BiFunction metadata) {
    LogicalPlan leaf = plan.child();
    while (leaf instanceof Project) leaf = ((Project) leaf).child();
    LogicalPlan scan = leaf;
    ArrayList conditions = new ArrayList();
    if (leaf instanceof Filter) {
      split(((Filter) leaf).condition(), conditions);
      leaf = ((Filter) leaf).child();
    }
    ArrayList calls = new ArrayList();
    List results = list(plan.aggregateExpressions());
    for (int i = 0; i < results.size(); i++) collect((Expression) results.get(i), calls);
    StringBuilder asked = new StringBuilder();
    for (int i = 0; i < calls.size(); i++) {
      String text = asked((AggregateExpression) calls.get(i), plan.child(), scan);
      if (text == null) return null;
      asked.append(i == 0 ? "" : "\0").append(text);
    }
    if (calls.isEmpty() || !(leaf instanceof LogicalRelation)) return null;
    String answer = (String) metadata.apply(new Object[] {leaf, conditions}, asked.toString());
    if (answer == null) return null;
    String[] texts = answer.split("\0", -1);
    ArrayList values = new ArrayList();
    for (int i = 0; i < texts.length; i++) values.add(literal(texts[i], ((Expression) calls.get(i)).dataType()));
    ArrayList columns = new ArrayList();
    for (int i = 0; i < results.size(); i++) columns.add(new ReplaceCalls(calls, values).apply(results.get(i)));
    return new Project(seq(columns), new OneRowRelation());
  }

  private static void collect(Expression expression, List calls) {
    if (expression instanceof AggregateExpression) {
      calls.add(expression);
      return;
    }
    List children = list(expression.children());
    for (int i = 0; i < children.size(); i++) collect((Expression) children.get(i), calls);
  }

  /** An aggregate as its name and its column; null if it is not one that metadata may answer. */
  private static String asked(AggregateExpression call, LogicalPlan plan, LogicalPlan scan) {
    AggregateFunction function = call.aggregateFunction();
    if (call.isDistinct() || call.filter().isDefined()) return null;
    String name = function instanceof Count ? "count" : function instanceof Min ? "min" : function instanceof Max ? "max" : null;
    if (name == null || function.children().size() != 1) return null;
    Expression argument = (Expression) list(function.children()).get(0);
    if (argument instanceof Literal) return name.equals("count") && ((Literal) argument).value() != null ? name : null;
    AttributeReference column = below(argument, plan, scan);
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

  /** What an attribute of a plan is among those of a node beneath it, through projections; null if it is computed. */
  private static AttributeReference below(Expression wanted, LogicalPlan plan, LogicalPlan node) {
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
