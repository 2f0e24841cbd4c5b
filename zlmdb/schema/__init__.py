"""The tables that a program declares, and their counterparts in a file."""
