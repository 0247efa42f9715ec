"""Java Iceberg's REST catalog server, and the kit by which the Iceberg project judges REST servers: `make java-rest` fetches both."""
