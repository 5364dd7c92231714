"""Storage: files on any file system (location.py), saved arrays (bundles.py), and local copies of both (copies.py).

Local disks and object stores have the same functions. A reader sees the old state or the new one, never a part.
"""
