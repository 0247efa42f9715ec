"""What a column is: types, ids, defaults, single-value encodings, evolution, name mapping."""
