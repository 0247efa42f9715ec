"""How rows are grouped and ordered: transforms, partition specs, sort orders."""
