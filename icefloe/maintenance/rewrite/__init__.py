"""Data files written anew: chosen by size and deletes, packed into groups, in another order, and committed."""
