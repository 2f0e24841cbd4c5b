"""The executor: how queries run over the records and indexes of bound tables, by plans of `zlmdb.query`."""
