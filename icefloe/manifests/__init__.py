"""Which files a snapshot holds, in columns."""
