"""What a table or view is at one moment, and the updates and requirements that change it."""
