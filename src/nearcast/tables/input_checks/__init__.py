"""What is checked before a table is read, and how its errors name the file."""
