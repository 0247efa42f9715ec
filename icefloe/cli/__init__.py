"""The command line `icefloe`: what commands there are, what they print and how they end; they decide nothing about tables."""
