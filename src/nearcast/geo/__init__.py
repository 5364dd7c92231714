"""Geometry: spaces, boxes, distances and regions.

A message has a place, which is a box (of size 0 for a point). A subscription has a region: bounding boxes, and an exact
shape if it is a circle or a polygon.

space            lon/lat or planar coordinates, and the check that they are valid
boxes            overlap tests of closed boxes, in kernels
distance         great-circle kilometres and planar Euclidean distances
region           the base class of regions, the box and the whole world
circle           circles
polygon          polygons and multipolygons
antimeridian     polygons across the antimeridian or around a pole
border_distance  great-circle distance to the border of a polygon
geojson          parser of regions: GeoJSON and short texts
shapes           the exact shapes of all live subscriptions, by number
loose_grid       a hierarchy of grids over boxes
"""
