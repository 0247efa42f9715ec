"""Files beneath a table that nothing of it needs."""
