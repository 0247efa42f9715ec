package org.apache.iceberg.rest;

import java.net.InetSocketAddress;
import java.util.Arrays;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;

/** Java Iceberg's REST catalog over the catalog of some properties, `key=value` each, on a free port of loopback, which it prints. */
public final class LoopbackServer {
  public static void main(String[] settings) throws Exception {
    Map<String, String> properties =
        Arrays.stream(settings)
            .map(setting -> setting.split("=", 2))
            .collect(Collectors.toMap(pair -> pair[0], pair -> pair[1]));
    var catalog = CatalogUtil.buildIcebergCatalog(properties.getOrDefault("catalog-name", "java"), properties, new Configuration());
    var adapter = new RESTServerCatalogAdapter(new RESTCatalogServer.CatalogContext(catalog, properties));
    var handler = new ServletContextHandler();
    handler.addServlet(new ServletHolder(new RESTCatalogServlet(adapter)), "/*");
    var server = new Server(new InetSocketAddress("127.0.0.1", 0));
    server.setHandler(handler);
    server.start();
    System.out.println(((ServerConnector) server.getConnectors()[0]).getLocalPort());
    // The server ends with the process that started it.
    while (System.in.read() >= 0) {}
    System.exit(0);
  }
}
