"""The change feed of a table: what is recorded of each change, and how it is read."""
