"""Derived terms: what a message has besides its tokens. Prefixes, phrases and groups of words are such terms."""
