"""The maps of zlmdb 26, over the same tables: for programs that were written for them."""
