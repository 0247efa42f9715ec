"""Delete files: those that delete nothing, those that are better written anew, and equality deletes as positions."""
