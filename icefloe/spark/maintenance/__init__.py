"""Maintenance as jobs of Spark."""
