"""Measures methods of kind `top`: arrivals over the same thetas, and whole streams, side by side."""
