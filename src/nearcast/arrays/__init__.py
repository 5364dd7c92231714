"""The lowest layer: kernels, ragged rows, growing arrays, hash tables, files of arrays. It knows no domain words."""
