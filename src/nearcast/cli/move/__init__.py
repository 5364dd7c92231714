"""`nearcast move`."""
