"""One process of publish/subscribe: tables or text in, matches out. No files or sockets of its own but the index's."""
