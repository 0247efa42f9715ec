"""Commands that set up catalogs, configuration and the shell."""
