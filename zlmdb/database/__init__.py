"""An open database: `zlmdb.open`, and the parts of `Database`."""
