"""Methods of tables that are compiled for their types: those that a program calls once per record."""
