"""The web page: catalogs and tables in a browser, rendered on the server, with charts as SVG."""
