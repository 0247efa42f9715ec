"""A catalog behind a server that speaks Iceberg's REST protocol."""
