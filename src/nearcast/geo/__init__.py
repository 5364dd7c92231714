"""Geometry: spaces, boxes, distances and regions.

A message has a place, which is a box (of size 0 for a point). A subscription has a region: bounding boxes, and an exact
shape if it is a circle or a polygon.
"""
