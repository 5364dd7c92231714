"""What phrases and prefixes cost: an index of which a share of the subscriptions has one, beside the same index with
plain words in their place. Messages are texts. Both find what brute force over the expressions finds, on a sample.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.bench.runs.agreement import Disagreement
from nearcast.bench.runs.timing import timed, timed_one_by_one
from nearcast.bench.workloads.corpus import Corpus, message_group
from nearcast.bench.workloads.random_numbers import stream_key, units
from nearcast.bench.workloads.subscriptions import draw_subscriptions
from nearcast.bench.workloads.workload import Workload
from nearcast.engine.index import Index, build_index
from nearcast.geo.space import BOX_COLUMNS
from nearcast.text.analyser import Analyser
from nearcast.text.clauses import clauses
from nearcast.text.expression import parse

_GROUP = "short-point"
_CHECKED = 20  # messages that are compared with brute force
_FEWEST_LETTERS = 3  # of a word that becomes a prefix, which has one letter less


class DerivedWorkload(NamedTuple):
    """Subscriptions twice: with plain words, and with phrases and prefixes among them."""

    boxes: np.ndarray
    plain: list[str]
    derived: list[str]

    def table(self, expressions: list[str]) -> pa.Table:
        columns: dict[str, Any] = dict(zip(BOX_COLUMNS, np.ascontiguousarray(self.boxes.T), strict=True))
        return pa.table({"id": np.arange(len(expressions)), "expression": expressions, **columns})


def draw_derived(corpus: Corpus, workload: Workload, phrases: float, prefixes: float) -> DerivedWorkload:
    """The workload's subscriptions. A phrase is two words that follow each other in a message of its own; a prefix is
    the first word without its last letter.
    """
    n = workload.subscriptions
    drawn, numbers = draw_subscriptions(corpus, workload, 0, n), np.arange(n)
    words = corpus.words().to_pylist()
    own = corpus.messages("phrases", numbers, workload.short)
    lots, places = (units(stream_key(workload.seed, f"worded/{name}"), numbers) for name in ("lot", "place"))
    plain, derived = list[str](), list[str]()
    for k in range(n):
        terms = drawn.terms[drawn.starts[k] : drawn.starts[k + 1]].tolist()
        first = words[terms[0]]
        if lots[k] < phrases:
            at = own.starts[k] + int(places[k] * (own.starts[k + 1] - own.starts[k] - 1))
            pair = [words[term] for term in own.terms[at : at + 2]]
            plain.append(" ".join(pair))
            derived.append(f'"{" ".join(pair)}"')
            continue
        plain.append(" ".join(words[term] for term in terms))
        is_prefix = lots[k] < phrases + prefixes and len(first) >= _FEWEST_LETTERS
        derived.append(" ".join([f"{first[:-1]}*", *(words[term] for term in terms[1:])]) if is_prefix else plain[-1])
    return DerivedWorkload(drawn.boxes, plain, derived)


def run_phrases(
    corpus: Corpus, workload: Workload, shares: tuple[float, float], rounds: int, step: Callable[[str], None]
) -> dict[str, Any]:
    """CPU time of a message with both indexes in turns: in tables, and one by one."""
    step("drawing subscriptions and messages")
    drawn = draw_derived(corpus, workload, *shares)
    messages = message_group(corpus, workload, _GROUP)
    words = corpus.words()
    bounds = zip(messages.starts[:-1].tolist(), messages.starts[1:].tolist(), strict=True)
    texts = [" ".join(words.take(pa.array(messages.terms[a:b])).to_pylist()) for a, b in bounds]
    x, y = messages.boxes[:, 0], messages.boxes[:, 1]
    table = pa.table({"id": np.arange(len(texts)), "text": texts, "x": x, "y": y})
    step("indexing plain words")
    plain = build_index(drawn.table(drawn.plain), "pyramid", space=workload.space)
    step("indexing phrases and prefixes")
    derived = build_index(drawn.table(drawn.derived), "pyramid", space=workload.space)
    _require_answers(derived, drawn, table)
    readings: dict[str, list[float]] = {}
    calls = list(zip(texts, x.tolist(), y.tolist(), strict=True))
    matches = {}
    for turn in range(rounds):
        step(f"matching, turn {turn + 1} of {rounds}")
        for name, index in (("plain", plain), ("derived", derived)):
            found, took = timed(index.match, table)
            matches[name] = found.num_rows / len(texts)
            readings.setdefault(f"{name}_table_us", []).append(took.all_threads_s / len(texts) * 1e6)
            readings.setdefault(f"{name}_single_us", []).append(_single_us(index, calls))
    medians = {name: float(np.median(values[1:] or values)) for name, values in readings.items()}
    ratios = {kind: medians[f"derived_{kind}_us"] / medians[f"plain_{kind}_us"] for kind in ("table", "single")}
    sizes = {f"{name}_bytes": index.nbytes for name, index in (("plain", plain), ("derived", derived))}
    return {"matches": matches, **sizes, **medians, "ratios": ratios, "derived_terms": derived.vocabulary.n_derived}


def _single_us(index: Index, calls: list[tuple[str, float, float]]) -> float:
    taken = timed_one_by_one(index.match_one, calls, time.thread_time)[1]
    return float(np.mean(taken))


def _require_answers(index: Index, drawn: DerivedWorkload, table: pa.Table) -> None:
    """Raise Disagreement unless the index finds what each expression says, for some messages."""
    analyser, sample = Analyser(), table.slice(0, _CHECKED)
    wanted = [clauses(parse(text, analyser)) for text in drawn.derived]
    found = index.match(sample).to_pydict()
    pairs = set(zip(found["message"], found["subscription"], strict=True))
    for row in sample.to_pylist():
        x, y, tokens = row["x"], row["y"], analyser.tokens(row["text"])
        boxes = drawn.boxes
        is_here = (boxes[:, 0] <= x) & (boxes[:, 2] >= x) & (boxes[:, 1] <= y) & (boxes[:, 3] >= y)
        own = {k for k in np.flatnonzero(is_here).tolist() if any(each.holds(tokens) for each in wanted[k])}
        if own != {subscription for message, subscription in pairs if message == row["id"]}:
            raise Disagreement(f"message {row['id']} finds others than its expressions say")
