"""Circles and polygons as arrays, and their exact tests in kernels.

table.py stores the shapes of live subscriptions by number, columns.py carries them there, arrays.py tests them against
messages, polygon_blocks.py lays polygons out, orientation.py decides on which side of a line a point is.
"""
