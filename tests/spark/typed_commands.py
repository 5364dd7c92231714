"""Commands of nearcast as typed, run in this process."""

from __future__ import annotations

import json
from typing import Any

from click.testing import Result
from typer.testing import CliRunner

from nearcast.cli.main import app

ORDER = [("message", "ascending"), ("subscription", "ascending")]
"""Of a matches table."""


def nearcast(*arguments: Any) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def run_json(*arguments: Any) -> Any:
    done = nearcast(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)
