"""From intention to (updates, requirements): one module per operation, conflict checks, the retry loop."""
