"""What several moving methods share: coordinates as codes of 16 bits, and lists of entries in one arena of words."""
