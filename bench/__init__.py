"""Benchmarks: ratios against a peer in the same run; see `python -m bench --list`."""
