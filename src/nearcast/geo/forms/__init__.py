"""Forms of regions that become GeoJSON before they are read."""
