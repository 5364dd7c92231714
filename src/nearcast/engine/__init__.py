"""Publish/subscribe in one process: tables or text in, matches out."""
