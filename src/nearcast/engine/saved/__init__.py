"""Saved indexes and engines: written, opened again, and checked or built anew if they are a stranger's."""
