"""`zlmdb.Cache`: values for a time, in a file of its own."""
