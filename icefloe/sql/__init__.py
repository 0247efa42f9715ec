"""What Spark's parser leaves to us: Iceberg's extension statements, and procedures as calls on table and catalog."""
