"""Spark SQL on our tables."""
