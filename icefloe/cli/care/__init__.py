"""Commands that keep tables healthy."""
