"""Which files a table needs and may delete, in sets of any size, and how they are deleted."""
