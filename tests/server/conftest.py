"""Fixtures of all tests of the server."""

from tests.server.running import client, lake, make_catalog

__all__ = ["client", "lake", "make_catalog"]
