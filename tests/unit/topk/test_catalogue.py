"""Methods of kind `top` are listed and checked by name."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import nearcast as nc
from nearcast.cli.main import app
from nearcast.engine.catalogue import HEADER_FIELDS, header_of
from nearcast.topk.method import METHODS, find_method


def test_methods_of_a_kind_are_listed() -> None:
    top = {info.name: info for info in nc.methods("top")}
    assert {"brute", "ciq", "norm-lists", "skype"} <= set(top) and top["skype"].kinds == ("top",)
    assert top["skype"].options == {"prune": "igpt", "refill": "cskyband", "leaf": 1000}
    assert {info.name for info in nc.methods("rank")} < {info.name for info in nc.methods()}


@pytest.mark.parametrize("info", nc.methods("top"), ids=lambda info: info.name)
def test_every_method_has_a_whole_header(info: object) -> None:
    name = str(getattr(info, "name", ""))
    header = header_of(METHODS[find_method(name).name])
    assert set(header) == set(HEADER_FIELDS) and all(header.values())


def test_checks_run_from_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearcast.topk.checks.variants", lambda name: [])
    done = CliRunner().invoke(app, ["methods", "--kind", "top", "--check", "norm-lists", "--json"])
    assert done.exit_code == 0, done.output
    outcomes = json.loads(done.stdout)
    assert len(outcomes) > 15 and {outcome["kind"] for outcome in outcomes} == {"top"}
