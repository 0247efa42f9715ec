"""Rows in a file: Parquet, Avro, ORC, Puffin; by field id, with metrics; deletion vectors and variants."""
