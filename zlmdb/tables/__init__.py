"""Tables of a transaction: their records, their indexes, and selections of both."""
