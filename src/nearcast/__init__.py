"""nearcast: location-aware publish/subscribe.

    text  --text/-->  terms  --+
                               +-->  engine/  --indexes/-->  candidates  --matching/-->  matches
    place --geo/---------------+

A subscription is a boolean expression over words and a region. A message is a text and a place. nearcast finds all
subscriptions that match a message. Importing nearcast compiles nothing; each public name is loaded on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nearcast.engine.catalogue import methods as methods
    from nearcast.engine.engine import Engine as Engine
    from nearcast.engine.engine import open_engine as open_engine
    from nearcast.engine.index import Index as Index
    from nearcast.engine.index import build_index as build_index
    from nearcast.engine.saved.saved_index import open_index as open_index
    from nearcast.errors import InvalidInput as InvalidInput
    from nearcast.errors import MadeIds as MadeIds
    from nearcast.errors import MostlyRejected as MostlyRejected
    from nearcast.errors import NearcastError as NearcastError
    from nearcast.errors import NearcastWarning as NearcastWarning
    from nearcast.model import Change as Change
    from nearcast.model import Match as Match
    from nearcast.moving.moving import Moving as Moving
    from nearcast.text.analyser import Analyser as Analyser
    from nearcast.text.vocabulary import Vocabulary as Vocabulary
    from nearcast.topk.topk import TopK as TopK
    from nearcast.topk.topk import open_topk as open_topk

__version__ = "0.1.0"

_MODULES = {
    "Analyser": "nearcast.text.analyser",
    "Change": "nearcast.model",
    "Engine": "nearcast.engine.engine",
    "Index": "nearcast.engine.index",
    "InvalidInput": "nearcast.errors",
    "MadeIds": "nearcast.errors",
    "Match": "nearcast.model",
    "MostlyRejected": "nearcast.errors",
    "Moving": "nearcast.moving.moving",
    "NearcastError": "nearcast.errors",
    "NearcastWarning": "nearcast.errors",
    "TopK": "nearcast.topk.topk",
    "Vocabulary": "nearcast.text.vocabulary",
    "build_index": "nearcast.engine.index",
    "methods": "nearcast.engine.catalogue",
    "open_engine": "nearcast.engine.engine",
    "open_index": "nearcast.engine.saved.saved_index",
    "open_topk": "nearcast.topk.topk",
}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'nearcast' has no attribute '{name}'")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
