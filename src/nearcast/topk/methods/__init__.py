"""The methods of kind `top`, one file each. A file has the name of its method, with `_` for `-`."""
