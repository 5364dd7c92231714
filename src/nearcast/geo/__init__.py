"""Places: spaces, boxes, distances, regions. A place is a box; a region has boxes and a shape.

space      lon/lat or planar, and what a valid coordinate is
boxes      closed boxes in kernels
distance   great-circle kilometres and planar Euclid
region     box and whole world;  circle, polygon: the other two regions
seam       polygons over the antimeridian or round a pole
geojson    text -> region
shapes     the exact shapes of many live subscriptions, by number
"""
