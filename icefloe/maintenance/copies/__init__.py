"""A table beneath another location, and the end of a table by its metadata file."""
