// Readers of files that queries share: Spark makes one for each scan, and sends the whole Hadoop configuration to tasks with each.
//
// A reader is a function from a file to its rows, of nothing but columns, filters, options and settings. Scans for which all of these
// are equal get the same one, whose configuration tasks have already.
package PACKAGE;

import java.lang.ref.WeakReference;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/** What Python calls. */
public class Entry {
  public Entry() {}

  /** A format that reads as another one does, by readers that are shared. */
  public ParquetFileFormat shared(ParquetFileFormat format) {
    return new SharedFormat(format);
  }

  /** How many readers are kept. */
  public int kept() {
    return Readers.size();
  }
}

/** The format. It equals itself in other plans, so that Spark can reuse exchanges and caches. */
class SharedFormat extends ParquetFileFormat {
  private final ParquetFileFormat format;

  SharedFormat(ParquetFileFormat format) {
    this.format = format;
  }

  public Function1 buildReaderWithPartitionValues(
      SparkSession session, StructType data, StructType constants, StructType required, Seq filters, Map options, Configuration conf) {
    // The configuration is that of this scan alone.
    HashMap settings = Settings.needed(conf);
    Object scan = Arrays.asList(new Object[] {
      format.getClass(), format, data, constants, required, filters, options, SQLConf.get().getAllConfs(), settings
    });
    Function1 reader = Readers.find(session.sparkContext(), scan);
    if (reader == null) {
      reader = format.buildReaderWithPartitionValues(session, data, constants, required, filters, options, conf);
      Readers.keep(session.sparkContext(), scan, reader);
    }
    return reader;
  }

  public Option vectorTypes(StructType required, StructType constants, SQLConf conf) {
    return format.vectorTypes(required, constants, conf);
  }

  public boolean equals(Object other) {
    if (other == null || other.getClass() != getClass()) return false;
    ParquetFileFormat others = ((SharedFormat) other).format;
    return others.getClass() == format.getClass() && others.equals(format);
  }

  public int hashCode() {
    return format.hashCode();
  }

  public String toString() {
    return format.toString();
  }
}

/** Hadoop's settings. */
class Settings {
  /** Those of YARN and MapReduce, as Hadoop's own files have them: two thirds of all, of which no reader asks any. */
  private static HashMap unneeded;

  /** Leave them out, and give the others by name. */
  static HashMap needed(Configuration conf) {
    HashMap values = new HashMap();
    HashMap defaults = unneeded(conf);
    for (Iterator all = conf.iterator(); all.hasNext();) {
      java.util.Map.Entry each = (java.util.Map.Entry) all.next();
      if (each.getValue().equals(defaults.get(each.getKey()))) {
        conf.unset((String) each.getKey());
      } else {
        values.put(each.getKey(), each.getValue());
      }
    }
    return values;
  }

  private static synchronized HashMap unneeded(Configuration conf) {
    if (unneeded == null) {
      unneeded = new HashMap();
      for (Iterator all = conf.iterator(); all.hasNext();) {
        java.util.Map.Entry each = (java.util.Map.Entry) all.next();
        String name = (String) each.getKey();
        if ((name.startsWith("yarn.") || name.startsWith("mapreduce.")) && isDefault(conf, name)) unneeded.put(name, each.getValue());
      }
    }
    return unneeded;
  }

  private static boolean isDefault(Configuration conf, String name) {
    String[] sources = conf.getPropertySources(name);
    return sources != null && sources.length == 1 && sources[0].endsWith("-default.xml");
  }
}

/** The readers of scans that were asked for last. Those of a context that was stopped are of no use to another. */
class Readers {
  private static final Recent RECENT = new Recent();
  private static WeakReference context = new WeakReference(null);

  static synchronized Function1 find(SparkContext current, Object scan) {
    if (context.get() != current) {
      RECENT.clear();
      context = new WeakReference(current);
    }
    return (Function1) RECENT.get(scan);
  }

  static synchronized void keep(SparkContext current, Object scan, Function1 reader) {
    if (context.get() == current) RECENT.put(scan, reader);
  }

  static synchronized int size() {
    return RECENT.size();
  }
}

class Recent extends LinkedHashMap {
  /** Each holds a configuration of some hundred kilobytes, in the driver and in executors that have used it. */
  private static final int MOST = 32;

  Recent() {
    super(16, 0.75f, true);
  }

  protected boolean removeEldestEntry(java.util.Map.Entry eldest) {
    return size() > MOST;
  }
}
