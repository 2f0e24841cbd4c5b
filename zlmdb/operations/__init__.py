"""What is done to a database as a whole: copied, checked, saved, converted, brought up to date."""
