"""Tests of the client of REST catalogs."""
