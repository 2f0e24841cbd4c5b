"""The tables that a program declares, and how they are found or made in a file."""
