"""Rows in Avro containers: header and blocks, schemas as trees, and two interpreters that read and write rows as columns."""
