"""Distinct values of columns, and counts of partitions, as files of the table."""
