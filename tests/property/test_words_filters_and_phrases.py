"""Phrases, prefixes, filters and groups of words: every method, tables and single messages, against plain Python."""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nearcast as nc
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.matching.checks.cases import variants
from nearcast.matching.method import method_names
from nearcast.matching.variant import variant_of
from worded_world import Worded, attributes, concerned, message, subscription, table

ROUNDS = 3 if JIT_DISABLED else 12


def _pairs(found: Any) -> dict[int, list[int]]:
    pairs: dict[int, list[int]] = {}
    for each in found.to_pylist():
        pairs.setdefault(each["message"], []).append(each["subscription"])
    return pairs


def _agrees(index: nc.Index, held: dict[int, Worded], rows: list[dict[str, Any]]) -> int:
    wanted = {row["id"]: concerned(held, row) for row in rows}
    assert _pairs(index.match(rows)) == {number: found for number, found in wanted.items() if found}
    for row in rows:
        one = index.match_one(row["text"], row["x"], row["y"], attributes(row))
        assert one.tolist() == wanted[row["id"]], (row, [(k, held[k].expression) for k in wanted[row["id"]]])
        assert index.match_one(row["text"].split(), row["x"], row["y"], attributes(row)).tolist() == one.tolist()
    return sum(map(len, wanted.values()))


@pytest.mark.parametrize("method", [variant for name in method_names("match") for variant in variants(name)])
def test_every_method_agrees_with_plain_python_under_changes(method: str, tmp_path: Path) -> None:
    rng = random.Random(method)
    held = {number: subscription(rng) for number in range(30)}
    _, name, options = variant_of(method)
    index, n_found = nc.build_index(table(held), name, space=(0, 0, 1, 1), **options), 0
    for turn in range(ROUNDS):
        n_found += _agrees(index, held, [message(rng, number) for number in range(12)])
        changed = {rng.randrange(40): subscription(rng) for _ in range(4)}
        held |= changed
        index.insert(table(changed))
        gone = rng.sample(sorted(held), 3)
        index.remove(gone)
        held = {number: each for number, each in held.items() if number not in gone}
        if turn == 1:
            index.save(tmp_path / "index")
            index = nc.open_index(tmp_path / "index")
        if turn == 2:
            index = pickle.loads(pickle.dumps(index))
    assert n_found > 5 * ROUNDS


def test_an_engine_agrees_with_plain_python_while_followers_come_and_go() -> None:
    for seed in range(3 if JIT_DISABLED else 10):
        rng = random.Random(seed)
        now = [0.0]
        engine = nc.Engine(space=(0, 0, 1, 1), clock=lambda now=now: now[0])  # type: ignore[misc]
        plain, following = dict[int, Worded](), dict[int, Worded]()
        live, results = dict[int, dict[str, Any]](), set[tuple[int, int]]()
        for step in range(40):
            if rng.random() < 0.4:
                number, drawn, follow = rng.randrange(12), subscription(rng), rng.random() < 0.6
                engine.subscribe(drawn.expression, box=drawn.box, id=number, follow=follow)
                plain.pop(number, None), following.pop(number, None)
                (following if follow else plain)[number] = drawn
            elif rng.random() < 0.1 and following:
                number = rng.choice(sorted(following))
                engine.unsubscribe(number)
                del following[number]
            else:
                row = message(rng, rng.randrange(8) if following else 1000 + step)
                own = attributes(row) or None
                events = engine.publish(row["text"], at=(row["x"], row["y"]), id=row["id"], attributes=own)
                found = [each.subscription for each in events if isinstance(each, nc.Match)]
                assert found == concerned(plain, row)
                if following:
                    live[row["id"]] = row
            if not following:
                live = {}
            results = {(each, number) for number, row in live.items() for each in concerned(following, row)}
            for number in following:
                own_results = engine.results(number)["message"].to_pylist()
                assert own_results == sorted(m for s, m in results if s == number)


@pytest.mark.parametrize("safe", [False, True])
def test_moving_finds_phrases_and_filters_in_messages_that_came_before(safe: bool, tmp_path: Path) -> None:
    rng = random.Random(7)
    held, live = dict[int, Worded](), dict[int, dict[str, Any]]()
    places = {"where": lambda ids: np.array([held[number].box for number in ids.tolist()])} if safe else {}
    moving = nc.Moving(space=(0, 0, 1, 1), safe=safe, **places)
    for step in range(12 if JIT_DISABLED else 40):
        rows = {row["id"]: row for row in (message(rng, rng.randrange(30)) for _ in range(4))}
        moving.publish(list(rows.values()))
        live |= rows
        new = {rng.randrange(15): subscription(rng)}
        moving.subscribe(table(new))
        held |= new
        if step % 5 == 4:
            gone = rng.choice(sorted(held))
            moving.unsubscribe([gone])
            del held[gone]
        if step == 6 and not safe:
            moving.save(tmp_path / "moving")
            moving = nc.Moving.open(tmp_path / "moving")
        for number in held:
            wanted = sorted(each for each, row in live.items() if number in concerned({number: held[number]}, row))
            assert moving.results(number)["message"].to_pylist() == wanted, held[number].expression
