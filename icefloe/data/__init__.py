"""From tasks to Arrow batches with deletes applied; from batches to data files."""
