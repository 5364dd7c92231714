"""Arrays from outside, checked: kernels read without looking at lengths, so that what they get must be sound."""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.errors import InvalidInput


def checked_column(given: Any, dtype: type, name: str, size: int | None = None, width: int | None = None) -> np.ndarray:
    """The array, contiguous, writeable and of one type, so that each kernel is compiled once.

    Raises InvalidInput for another length than `size`, for rows of other than `width` numbers, and for numbers that
    the type does not have.
    """
    array = given if type(given) is np.ndarray and given.dtype == dtype else _converted(given, dtype, name)
    shape: tuple[int | None, ...] = (size,) if width is None else (size, width)
    fits = all(want in (None, found) for want, found in zip(shape, array.shape, strict=False))
    if array.ndim != len(shape) or not fits:
        wanted = " x ".join("n" if each is None else str(each) for each in shape)
        raise InvalidInput(f"an array of {wanted} numbers is needed, not of the shape {array.shape}", column=name)
    if array.flags.writeable and array.flags.c_contiguous:
        return array
    return np.array(array, dtype, order="C")


def _converted(given: Any, dtype: type, name: str) -> np.ndarray:
    try:
        array = np.asarray(given)
    except (ValueError, TypeError):
        raise InvalidInput(f"an array of numbers is needed, not {type(given).__name__}", column=name) from None
    accepted = "iuf" if np.dtype(dtype).kind == "f" else "iu"
    if array.size and array.dtype.kind not in accepted:
        raise InvalidInput(f"numbers of the type {np.dtype(dtype)} are needed, not {array.dtype}", column=name)
    if array.size and np.dtype(dtype).kind != "f":
        limits = np.iinfo(dtype)
        if int(array.min()) < limits.min or int(array.max()) > limits.max:
            raise InvalidInput(f"a number is not within {np.dtype(dtype)}", column=name)
    return array.astype(dtype)


def require_starts(starts: np.ndarray, n_values: int, name: str) -> None:
    """Raise InvalidInput unless these are the starts of a ragged array of so many values."""
    is_right = (0, n_values) == (*starts.tolist(),) if len(starts) == 2 else are_starts(starts, n_values)
    if not is_right:  # of one row: calling a kernel takes longer
        reason = f"the starts of {n_values} values begin with 0, never descend, and end with {n_values}"
        raise InvalidInput(reason, column=name)


@kernel
def are_starts(starts, n_values):
    """Whether the starts begin with 0, never descend, and end with the number of values."""
    if len(starts) == 0 or starts[0] != 0 or starts[len(starts) - 1] != n_values:
        return False
    for row in range(len(starts) - 1):
        if starts[row] > starts[row + 1]:
            return False
    return True
