"""A database file that is open: its engine, its transactions, and what its catalogue says of the tables."""
