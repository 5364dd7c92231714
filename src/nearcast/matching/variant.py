"""A method with options, spelled as one text: "pyramid crowded=2 young=8"."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from nearcast.errors import InvalidInput
from nearcast.geo.space import Space
from nearcast.matching.method import Method, make_method
from nearcast.matching.store import RowStore


class Variant(NamedTuple):
    """The label is the spelling with single spaces: what tables and error messages show."""

    label: str
    name: str
    options: dict[str, Any]

    def make(self, store: RowStore, space: Space) -> Method:
        """An empty method over a store; unknown options and unusable values raise."""
        try:
            return make_method(self.name, store, space, self.options)
        except TypeError as error:
            if not self.options:
                raise  # the method's own fault; with options, most likely a text where it compares numbers
            raise InvalidInput(f"'{self.label}' has an option of the wrong type: {error}") from None


def variant_of(text: str) -> Variant:
    """A name, then any number of key=value: JSON where it is JSON (numbers, true, null), else text."""
    name, *pairs = text.split() or [""]
    options: dict[str, Any] = {}
    for pair in pairs:
        option = option_of(pair)
        if option is None:
            raise InvalidInput(f"'{text}' is no method: after its name come options like key=value, not '{pair}'")
        if option[0] in options:
            raise InvalidInput(f"'{text}' gives '{option[0]}' twice")
        options[option[0]] = option[1]
    return Variant(" ".join([name, *pairs]), name, options)


def option_of(pair: str) -> tuple[str, Any] | None:
    """key=value as (key, value), or None where it is not that. JSON where it is JSON, else text."""
    key, equals, value = pair.partition("=")
    if not equals or not key.isidentifier():
        return None
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value
