"""Settings that the methods of kind `top` fix, and that the tuning experiments of the Skype paper vary.

`kmax` is the most messages of a buffer (with refill=kmax), `share` the threshold as a share of the k-th score (with
refill=skyband), `groups` the number of groups of a posting list (of `skype`). They are not options of `nc.TopK`: the
defaults are those that the paper found best.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from nearcast.errors import InvalidInput
from nearcast.matching.variant import Variant
from nearcast.topk.dissemination.igpt import build
from nearcast.topk.refill.policy import POLICIES, KMax, Policy, Skyband

_TUNED = {"kmax": ("refill", "kmax"), "share": ("refill", "skyband"), "groups": ("prune", "igpt")}
"""By setting: the option of `skype` that it belongs to, and the value of that option."""
_DEFAULTS = {"prune": "igpt"}
_NAME = "tuned"
_GROUPS = "N_GROUPS"  # the constant of the index that `groups` replaces


def split_tuning(variant: Variant) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of a method, and the settings that are no options."""
    options = {name: value for name, value in variant.options.items() if name not in _TUNED}
    tuning = {name: value for name, value in variant.options.items() if name in _TUNED}
    for name, value in tuning.items():
        option, wanted = _TUNED[name]
        if variant.name != "skype" or options.get(option, _DEFAULTS.get(option)) != wanted:
            raise InvalidInput(f"'{name}' in '{variant.label}' needs skype {option}={wanted}")
        if not isinstance(value, int | float) or value <= 0:
            raise InvalidInput(f"'{name}' in '{variant.label}' must be a number above 0")
    return options | ({"refill": _NAME} if tuning.keys() & {"kmax", "share"} else {}), tuning


@contextmanager
def tuned(tuning: dict[str, Any]) -> Iterator[None]:
    """While it is entered, methods are made and run with these settings."""
    groups = getattr(build, _GROUPS)
    policy = _policy(tuning)
    if policy is not None:
        POLICIES[_NAME] = policy
    setattr(build, _GROUPS, tuning.get("groups", groups))
    try:
        yield
    finally:
        setattr(build, _GROUPS, groups)
        POLICIES.pop(_NAME, None)


def _policy(tuning: dict[str, Any]) -> type[Policy] | None:
    if "kmax" in tuning:
        return type("TunedKMax", (_FixedKMax,), {"most": int(tuning["kmax"])})
    if "share" in tuning:
        return type("TunedSkyband", (Skyband,), {"share_of_kth": float(tuning["share"])})
    return None


class _FixedKMax(KMax):
    """Buffers of at most `most` messages, and at least k."""

    most = 60

    def depths(self, ks: np.ndarray) -> np.ndarray:
        return np.maximum(ks.astype(np.int64), self.most)
