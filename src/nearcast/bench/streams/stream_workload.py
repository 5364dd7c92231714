"""A workload with a stream: messages that come and expire, best-k subscriptions or moving subscriptions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from nearcast.bench.workloads.workload import Workload
from nearcast.errors import InvalidInput

STREAM_KINDS = ("top", "moving")
_LEAST = {"window": 0, "k": 1, "burst": 1, "lifetime": 1, "arrivals": 0, "steps": 1, "streets": 2}


@dataclass(frozen=True)
class StreamWorkload(Workload):
    """`messages` are those that a stream of kind `top` measures; they come after the window is full."""

    kinds: ClassVar[tuple[str, ...]] = STREAM_KINDS

    kind: str = "top"
    groups: tuple[str, ...] = ("short-point",)
    window: int = 10_000  # messages that are live when the measurements begin
    messages_file: str = ""  # real messages, in the order of the file; the shipped sample if the file is not there

    # of kind top
    k: int = 20
    burst: int = 10  # messages that come in the same second
    uneven: bool = False  # a burst has 0 to 2 * burst messages
    zipf_words: bool = False  # tokens of subscriptions are drawn by Zipf's law, not from messages

    # of kind moving
    lifetime: int = 10  # steps that a message lives
    arrivals: int = 0  # messages that come in a step, and live until as many as `window` are there; 0: by `lifetime`
    steps: int = 5  # of a round; a method that rebuilds now and then does so in every round
    mobility: float = 0.2  # share of the subscriptions that move in a step
    velocity: float = 1.0  # times the medium velocity
    streets: int = 64  # of the road grid, in each direction
    tracks_file: str = ""  # real tracks instead of the road grid

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise InvalidInput(f"the workload's {name} must be a whole number, {least} or more")
        if not 0 <= self.mobility <= 1:
            raise InvalidInput("the workload's mobility must be a share from 0 to 1")
        if not (self.velocity > 0 and math.isfinite(self.velocity)):
            raise InvalidInput("the workload's velocity must be above 0")

    @property
    def period_s(self) -> int:
        """The seconds that a message stays in the window of kind `top`."""
        return max(1, self.window // self.burst)

    @property
    def steps_live(self) -> int:
        """The steps that a message lives, in a stream of kind `moving`."""
        return max(1, self.window // self.arrivals) if self.arrivals else self.lifetime

    @property
    def per_step(self) -> int:
        """The messages that arrive, and that expire, in a step of kind `moving`."""
        return self.window // self.steps_live

    def scaled(self, factor: float) -> StreamWorkload:
        """Subscriptions, messages, words and the window multiplied by a factor."""
        smaller = super().scaled(factor)
        window = max(4 * self.lifetime, round(self.window * factor)) if self.window else 0
        arrivals = max(1, round(self.arrivals * factor)) if self.arrivals else 0
        return smaller.but(window=window, arrivals=arrivals)


def stream_workload_of(parameters: Mapping[str, Any]) -> StreamWorkload:
    """The stream workload with these parameters. `live_share` sets the window as a multiple of the subscriptions."""
    changes = dict(parameters)
    share = changes.pop("live_share", None)
    made = StreamWorkload().but(**changes)
    if share is None:
        return made
    if not isinstance(share, int | float) or share < 0:
        raise InvalidInput(f"live_share is a number of live messages for each subscription, not {share!r}")
    return made.but(window=round(share * made.subscriptions))
