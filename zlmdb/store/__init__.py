"""An open database file: its engine, its transactions, and its catalogue."""
