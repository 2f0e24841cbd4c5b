"""The kinds of indexes beside the plain one, a file each: what is declared, how entries are made, what is read."""
