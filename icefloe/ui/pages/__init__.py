"""The pages: each a function from what is asked to an answer, which puts values together and decides nothing about tables."""
