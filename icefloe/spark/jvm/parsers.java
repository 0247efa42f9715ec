// Spark's parser with answers of ours to some of the calls: no other call reaches Python, and Spark's errors stay what they are, of
// which it catches some by their class.
package PACKAGE;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.HashSet;
import org.apache.spark.sql.catalyst.parser.ParserInterface;

/** What Python calls. */
public class Entry {
  /** A parser that asks `ours` by the methods of these names, and Spark's own by all others. */
  public ParserInterface parser(ParserInterface sparks, ParserInterface ours, String names) {
    Class[] kind = new Class[] {ParserInterface.class};
    return (ParserInterface) Proxy.newProxyInstance(kind[0].getClassLoader(), kind, new Calls(sparks, ours, names));
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
