"""Methods of tables that are compiled for their types: what a program calls once a record."""
