"""Commands that change tables and catalogs."""
