"""The ground floor: kernels, ragged rows, growing arrays, hash tables, files of arrays. Knows no domain word."""
