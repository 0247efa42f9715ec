// A relation whose rows Python provides when a query runs: only the columns that it asks for, of rows that match its filters.
package PACKAGE;

import java.util.function.BiFunction;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.LogicalRelation$;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CatalystScan;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/** What Python calls. */
public class Entry {
  /** The plan of a relation; `key` is equal for relations of equal rows. */
  public Object plan(SparkSession session, Object schema, String key, long size, BiFunction rows) {
    return LogicalRelation$.MODULE$.apply(new LazyRows(session.sqlContext(), (StructType) schema, key, size, rows), false);
  }
}

class LazyRows extends BaseRelation implements CatalystScan {
  private final SQLContext context;
  private final StructType schema;
  private final String key;
  private final long size;
  private final BiFunction rows;

  LazyRows(SQLContext context, StructType schema, String key, long size, BiFunction rows) {
    this.context = context;
    this.schema = schema;
    this.key = key;
    this.size = size;
    this.rows = rows;
  }

  public SQLContext sqlContext() {
    return context;
  }

  public StructType schema() {
    return schema;
  }

  public boolean needConversion() {
    return false;
  }

  public long sizeInBytes() {
    return size;
  }

  public RDD buildScan(Seq columns, Seq filters) {
    return (RDD) rows.apply(columns, filters);
  }

  public String toString() {
    return key;
  }

  public int hashCode() {
    return key.hashCode();
  }

  public boolean equals(Object other) {
    return other instanceof LazyRows && ((LazyRows) other).key.equals(key);
  }
}
