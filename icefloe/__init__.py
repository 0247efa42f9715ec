"""The Apache Iceberg table format in Python, with its data pipeline on Apache Spark."""
