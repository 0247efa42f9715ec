// Spark's parser with answers of ours to some of the calls: no other call reaches Python, and Spark's errors stay what they are, of
// which it catches some by their class. And what Python asks of the plans that it makes, by one call in place of many.
package PACKAGE;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import org.apache.spark.sql.catalyst.AliasIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.classic.Dataset;
import scala.Function1;
import scala.PartialFunction;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/** What Python calls. */
public class Entry {
  private static final ObjectMapper JSON = new ObjectMapper();

  /** A parser that asks `ours` by the methods of these names, and Spark's own by all others. */
  public ParserInterface parser(ParserInterface sparks, ParserInterface ours, String names) {
    Class[] kind = new Class[] {ParserInterface.class};
    return (ParserInterface) Proxy.newProxyInstance(kind[0].getClassLoader(), kind, new Calls(sparks, ours, names));
  }

  /** The plan with each node of these classes replaced by what `ours` makes of it, leaves first, subqueries included. */
  public LogicalPlan rebuilt(LogicalPlan plan, PartialFunction ours, String classes) {
    return (LogicalPlan) plan.transformUpWithSubqueries(new OfClasses(ours, classes));
  }

  /** The class of a node, and of a relation that is not resolved its name, its options, and whether it is a stream, in JSON. */
  public String described(LogicalPlan node) throws JsonProcessingException {
    ArrayList facts = new ArrayList();
    facts.add(node.getClass().getSimpleName());
    if (node instanceof UnresolvedRelation) {
      UnresolvedRelation relation = (UnresolvedRelation) node;
      facts.add(new ArrayList(CollectionConverters.asJava(relation.multipartIdentifier())));
      facts.add(relation.options().asCaseSensitiveMap());
      facts.add(Boolean.valueOf(relation.isStreaming()));
    }
    return JSON.writeValueAsString(facts);
  }

  /** The plan of a frame, under a name. */
  public LogicalPlan named(Dataset frame, AliasIdentifier name) {
    return new SubqueryAlias(name, frame.queryExecution().logical());
  }

  /** Note something about a frame in its plans. */
  public void note(Dataset frame, TreeNodeTag tag, String text) {
    frame.queryExecution().logical().setTagValue(tag, text);
    frame.queryExecution().analyzed().setTagValue(tag, text);
  }
}

/** A function of nodes of some classes. */
class OfClasses extends AbstractPartialFunction {
  private final PartialFunction function;
  private final HashSet classes;

  OfClasses(PartialFunction function, String classes) {
    this.function = function;
    this.classes = new HashSet(Arrays.asList(classes.split(" ")));
  }

  public boolean isDefinedAt(Object node) {
    return classes.contains(node.getClass().getSimpleName());
  }

  public Object applyOrElse(Object node, Function1 otherwise) {
    return isDefinedAt(node) ? function.apply(node) : otherwise.apply(node);
  }
}

class Calls implements InvocationHandler {
  private final Object sparks;
  private final Object ours;
  private final HashSet names;

  Calls(Object sparks, Object ours, String names) {
    this.sparks = sparks;
    this.ours = ours;
    this.names = new HashSet(Arrays.asList(names.split(" ")));
  }

  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    try {
      return method.invoke(names.contains(method.getName()) ? ours : sparks, arguments);
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }
}
