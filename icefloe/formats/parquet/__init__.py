"""Parquet files: reading, writing, and what pyarrow leaves out."""
