"""The LMDB engine: one noun a module; `engine` has the engine itself, `pages` and `structure` read its data file."""
