"""Refills: the messages of the window, indexed by term, and policies that say how many of them a buffer gets."""
