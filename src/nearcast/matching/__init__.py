"""The matching contract: rows, the method interface and its registry, the one exact predicate, and the checks."""
