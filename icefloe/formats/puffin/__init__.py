"""Puffin files: statistics and deletion vectors."""
