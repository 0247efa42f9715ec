"""Tests of how a REST client says who it is."""
