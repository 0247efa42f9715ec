"""What the benchmark of REST servers needs: a PostgreSQL, both servers over the same tables in it, and a load generator."""
