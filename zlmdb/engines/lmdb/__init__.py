"""The LMDB engine: `engine` has the engine itself; `pages`, `openable` and `structure` read its data file."""
