"""The REST catalog server: translates requests of the Iceberg REST protocol into calls on catalogs and tables."""
