"""Commands that answer SQL."""
