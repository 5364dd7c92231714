"""When kernels are compiled (NEARCAST_COMPILE), and the note to a user who waits for it."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

from nearcast.errors import InvalidInput

VARIABLE = "NEARCAST_COMPILE"
PATIENCE = 1.0  # seconds of waiting without a word

_noted = threading.Event()


class Mode(StrEnum):
    """What happens when a kernel is called that is neither compiled nor in the cache."""

    NOW = "now"  # the call waits until the kernel is compiled
    BACKGROUND = "background"  # another process compiles it; until then small calls are interpreted
    NEVER = "never"  # it is interpreted


def compile_mode() -> Mode:
    """The mode that the environment sets; `background` if it sets none."""
    name = os.environ.get(VARIABLE) or Mode.BACKGROUND
    if name not in tuple(Mode):
        raise InvalidInput(f"{VARIABLE} is {name!r}; use now, background or never")
    return Mode(name)


def compile_now() -> None:
    """Compile at the first call from now on, here and in processes that this process starts.

    For measurements, and for work of which all is large.
    """
    os.environ[VARIABLE] = Mode.NOW


@contextmanager
def noting_waits() -> Iterator[None]:
    """Tell the user, once, if the block takes over a second: on a terminal, or where logging wants it."""
    timer = threading.Timer(PATIENCE, _note)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _note() -> None:
    if _noted.is_set():
        return
    _noted.set()
    text = "compiling for large tables, which takes 10 to 60 s the first time; `nearcast warmup` does so in advance"
    logging.getLogger("nearcast").info(text)
    if sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write(f"nearcast: {text}\n")


compile_mode()  # a wrong setting is an error at once, not when the first kernel is compiled
