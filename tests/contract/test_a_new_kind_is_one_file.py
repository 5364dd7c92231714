"""A kind defined here, in one place, works through checks, tables, `Index`, `Engine` and the command line.

Kind `near-centre`: a row is delivered where all of its terms occur and the message lies within `reach` of the centre of
its box (the larger of the distances along both axes). The score is 1 at the centre and falls to 0 at the reach.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import nearcast as nc
from nearcast.cli.main import app
from nearcast.matching.checks import run_checks
from nearcast.matching.exact_scan import ExactScan
from nearcast.matching.method import REGISTRY
from nearcast.matching.predicate import has_all_terms
from nearcast.matching.row_params import EXACT_TESTS, RowParams
from nearcast.matching.store import RowStore
from nearcast.model import KINDS, Kind, Parameter, register_kind
from nearcast.tables import read_subscriptions

UNIT = (0.0, 0.0, 1.0, 1.0)


@pytest.fixture(autouse=True)
def near_centre() -> Iterator[Kind]:
    """The kind, until the test ends: its declaration, its exact test, its oracle."""
    kind = Kind("near-centre", (Parameter("reach", "a distance", high=2.0, default=0.25),), is_scored=True)
    register_kind(kind)

    class NearCentre(RowParams):
        kind = KINDS["near-centre"]

        def score(self, store: RowStore, row: int, marks: np.ndarray, box: np.ndarray) -> float:
            if not has_all_terms(store.arrays, row, marks):
                return -1.0
            own, reach = store.arrays.boxes[row], self.columns["reach"][row]
            away = np.abs(own[:2] + own[2:] - box[:2] - box[2:]).max() / 2
            return float(1.0 - away / reach) if reach else float(away == 0.0) - 1.0

        def least_score(self, row: int) -> float:
            return 0.0

    class Brute(ExactScan):
        kind = "near-centre"
        name = "brute"

    yield kind
    del KINDS["near-centre"], EXACT_TESTS["near-centre"], REGISTRY["near-centre", "brute"]


def rows() -> list[dict[str, Any]]:
    box = {"xmin": 0.4, "ymin": 0.4, "xmax": 0.6, "ymax": 0.6}
    return [
        {"id": 1, "tokens": ["a"], "kind": "near-centre", "reach": 0.2, **box},
        {"id": 2, "tokens": ["a", "b"], "kind": "near-centre", "reach": None, **box},
        {"id": 3, "tokens": ["a"], "kind": "match", "reach": None, **box},
    ]


MESSAGES = {"id": [7, 8], "text": ["a", "a b"], "x": [0.5, 0.65], "y": [0.5, 0.5]}
WANTED = [(7, 1, 1.0), (7, 3, None), (8, 1, pytest.approx(0.25)), (8, 2, pytest.approx(0.4))]


def test_the_new_kind_passes_every_check() -> None:
    outcomes = [outcome for outcome in run_checks("brute") if outcome.kind == "near-centre"]
    assert len(outcomes) > 20 and [outcome for outcome in outcomes if outcome.failure] == []


def test_tables_read_and_refuse_its_parameter(near_centre: Kind) -> None:
    dialect = nc.build_index(rows(), space=UNIT).subscription_dialect("raise")
    read = read_subscriptions(rows(), nc.Vocabulary(), dialect)
    assert read.rows(near_centre).params["reach"].tolist() == [0.2, 0.25]
    with pytest.raises(nc.InvalidInput, match="row 1, column 'reach': 3.0 is not within 0 to 2"):
        nc.build_index([rows()[0] | {"reach": 3.0}], space=UNIT)


def test_an_index_matches_changes_and_saves_it(tmp_path: Path) -> None:
    index = nc.build_index(rows(), space=UNIT)
    assert [tuple(pair.values()) for pair in index.match(MESSAGES).to_pylist()] == WANTED
    index.save(tmp_path / "index")
    opened = nc.open_index(tmp_path / "index")
    assert opened.match(MESSAGES).equals(index.match(MESSAGES)) and opened.plan.endswith("kind near-centre: brute")
    opened.remove([1])
    assert opened.match_one(["a", "b"], 0.5, 0.5).tolist() == [2, 3]


def test_the_engine_takes_and_explains_it() -> None:
    engine = nc.Engine(space=UNIT)
    number = engine.subscribe("(a OR b) NOT c", box=(0.4, 0.4, 0.6, 0.6), kind="near-centre", reach=0.2)
    (match,) = engine.publish("a b", at=(0.55, 0.5))
    assert (match.subscription, match.score) == (number, pytest.approx(0.75))
    assert engine.publish("a c", at=(0.55, 0.5)) == []
    assert engine.explain(number, "a", at=(0.55, 0.5)).holds
    assert not engine.explain(number, "a", at=(0.9, 0.5)).holds
    assert not engine.explain(number, "a c", at=(0.55, 0.5)).holds
    never = engine.subscribe("a NOT a", kind="near-centre")
    assert not engine.explain(never, "a", at=(0.5, 0.5)).holds
    with pytest.raises(nc.InvalidInput, match="reach= is a number from 0 to 2, not 9"):
        engine.subscribe("a", kind="near-centre", reach=9)
    with pytest.raises(nc.InvalidInput, match="reach= goes with kind='near-centre'"):
        engine.subscribe("a", reach=1)


def test_the_command_line_matches_it(tmp_path: Path) -> None:
    for name, table in (("subscriptions", rows()), ("messages", None)):
        listed = table or [dict(zip(MESSAGES, row, strict=True)) for row in zip(*MESSAGES.values(), strict=True)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(json.dumps(row) for row in listed))
    tables = [str(tmp_path / "subscriptions.jsonl"), str(tmp_path / "messages.jsonl")]
    done = CliRunner().invoke(app, ["match", *tables, "--space", "0,0,1,1", "--json"])
    assert done.exit_code == 0, done.output
    pairs = json.loads(done.stdout)["first_pairs"]
    assert [(pair["message"], pair["subscription"], pair["score"]) for pair in pairs] == WANTED
