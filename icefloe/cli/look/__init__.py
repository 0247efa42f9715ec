"""Commands that look at tables and change nothing."""
