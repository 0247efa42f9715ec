"""The variant type: its values, shredding, and texts."""
