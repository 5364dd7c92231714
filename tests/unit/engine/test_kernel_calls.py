"""How many kernels one call of an engine runs. A kernel call with many arrays takes 3 us, a tenth of them are enough to
lose what batching gained.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import nearcast as nc
from nearcast.arrays.jit import JIT_DISABLED

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="kernels are plain functions")


@contextmanager
def counted_kernels() -> Iterator[list[str]]:
    """The names of the kernels that Python code calls inside the block."""
    from nearcast.arrays.jit.dispatcher import Kernel

    names: list[str] = []
    running = False

    def counted(kernel: Any) -> Callable[..., Any]:
        @functools.wraps(kernel.py_func)
        def call(*args: Any) -> Any:
            nonlocal running
            if running:  # an interpreted kernel calls another one
                return kernel(*args)
            names.append(kernel.py_func.__name__)
            running = True
            try:
                return kernel(*args)
            finally:
                running = False

        return call

    with pytest.MonkeyPatch.context() as patch:
        for module in [module for name, module in sys.modules.items() if name.startswith("nearcast.")]:
            for name, value in list(vars(module).items()):
                if isinstance(value, Kernel):
                    patch.setattr(module, name, counted(value))
        yield names


PLACES = {
    "a box": {"box": (1.0, 1.0, 2.0, 2.0)},
    "a circle": {"near": (1.0, 1.0), "km": 5.0},
}
MOST = {"a box": 6, "a circle": 8}


@pytest.mark.parametrize("place", PLACES)
def test_subscribing_runs_few_kernels(place: str) -> None:
    engine = nc.Engine("pyramid")
    for number in range(40):  # arrays have room, and kernels are compiled or loaded
        engine.subscribe("fire AND road", id=number, **PLACES["a circle" if number % 2 else "a box"])
    with counted_kernels() as names:
        engine.subscribe("fire AND road", id=40, **PLACES[place])
    assert 0 < len(names) <= MOST[place], names


def test_publishing_runs_two_kernels() -> None:
    engine = nc.Engine("pyramid")
    engine.subscribe("fire", **PLACES["a circle"])
    engine.subscribe("fire NOT road", **PLACES["a box"])
    for _ in range(2):
        engine.publish("fire", at=(1.0, 1.0))
    with counted_kernels() as names:
        found = engine.publish("fire", at=(1.0, 1.0))
    assert [match.subscription for match in found] == [1, 2]
    assert len(names) == 2, names
