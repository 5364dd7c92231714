"""Reports on benchmark results.

figures.py   the numbers that reports show, computed from a raw result
tables.py    those numbers as tables, for the screen or in Markdown
picture.py   those numbers as pictures
"""
