"""Sweeps are data: a TOML file names a workload, up to two parameters to vary, methods, how to measure."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from nearcast.bench.reports.results import Result, surroundings
from nearcast.bench.runs.runner import Settings, Tell, known_methods, run_case, steps_of
from nearcast.bench.workloads.corpus import Corpus
from nearcast.bench.workloads.workload import PRESETS, Workload, read_toml, workload_of
from nearcast.errors import InvalidInput

_SHIPPED = resources.files("nearcast.bench") / "sweeps"
_FIELDS = ("about", "methods", "name", "run", "vary", "workload")
_MOST_VARIED = 2

MakeCorpus = Callable[[Workload], Corpus]


@dataclass(frozen=True)
class Case:
    """One point of a sweep: the values of its varied parameters, and the workload that they make."""

    varied: dict[str, Any]
    workload: Workload


@dataclass(frozen=True)
class Sweep:
    """`vary` maps a workload's parameter (or `base`, the preset) to its values; all combinations are run."""

    name: str
    about: str = ""
    workload: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    vary: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)
    methods: tuple[str, ...] = ()
    settings: Settings = dataclasses.field(default_factory=Settings)

    def cases(self, scale: float = 1.0) -> list[Case]:
        """Every combination, the first varied parameter changing slowest."""
        cases = []
        for values in itertools.product(*self.vary.values()):
            varied = dict(zip(self.vary, values, strict=True))
            parameters = dict(self.workload) | varied
            workload = workload_of({"name": _name_of(parameters, self.name)} | parameters)
            if scale != 1.0:
                workload = workload.scaled(scale)
                varied = {key: workload.parameters().get(key, value) for key, value in varied.items()}
            cases.append(Case(varied, workload))
        return cases


def _name_of(parameters: Mapping[str, Any], otherwise: str) -> str:
    return str(parameters.get("base", otherwise))


def shipped_sweeps() -> list[Sweep]:
    """The sweeps that come with nearcast, by name."""
    files = [entry for entry in _SHIPPED.iterdir() if entry.name.endswith(".toml")]
    return [find_sweep(entry.name.removesuffix(".toml")) for entry in sorted(files, key=lambda entry: entry.name)]


def find_sweep(name: str | os.PathLike[str]) -> Sweep:
    """A shipped sweep by name, or one in a TOML file."""
    shipped = _SHIPPED / f"{name}.toml"
    if not str(name).endswith(".toml") and "/" not in str(name) and shipped.is_file():
        with resources.as_file(shipped) as path:
            return sweep_of({"name": str(name)} | read_toml(path))
    path = Path(name)
    if path.suffix != ".toml":
        names = sorted(entry.name.removesuffix(".toml") for entry in _SHIPPED.iterdir() if entry.name.endswith(".toml"))
        raise InvalidInput(f"no sweep '{name}'; there are {', '.join(names)}, or give a .toml file")
    return sweep_of({"name": path.stem} | read_toml(path))


def sweep_of(data: Mapping[str, Any]) -> Sweep:
    """A sweep from what its file says; anything unknown or unusable is refused."""
    for key in data:
        if key not in _FIELDS:
            raise InvalidInput(f"a sweep has no entry '{key}'; it has {', '.join(_FIELDS)}")
    _require_tables(data)
    vary = dict(data.get("vary", {}))
    if len(vary) > _MOST_VARIED:
        raise InvalidInput(f"a sweep varies at most {_MOST_VARIED} parameters; this one varies {', '.join(vary)}")
    for key, values in vary.items():
        if not isinstance(values, list) or not values:
            raise InvalidInput(f"the values of a varied parameter are a list; those of '{key}' are {values!r}")
    made = Sweep(
        str(data["name"]),
        str(data.get("about", "")),
        dict(data.get("workload", {})),
        vary,
        tuple(data.get("methods", ())),
        settings_of(data.get("run", {})),
    )
    known_methods(made.methods)
    made.cases()  # refuses unknown parameters and values now, not an hour into the run
    return made


def _require_tables(data: Mapping[str, Any]) -> None:
    for key in ("workload", "vary", "run"):
        if not isinstance(data.get(key, {}), Mapping):
            raise InvalidInput(f"a sweep's '{key}' is a table of names and values")
    methods = data.get("methods", [])
    if not isinstance(methods, list | tuple) or not all(isinstance(name, str) for name in methods):
        raise InvalidInput("a sweep's 'methods' is a list of names; leave it out for all methods")
    base = data.get("workload", {}).get("base")
    if base is not None and base not in PRESETS:
        raise InvalidInput(f"no workload '{base}' to base on; there are {', '.join(PRESETS)}")


def settings_of(values: Mapping[str, Any]) -> Settings:
    known = [field.name for field in dataclasses.fields(Settings)]
    for key in values:
        if key not in known:
            raise InvalidInput(f"a run has no setting '{key}'; it has {', '.join(known)}")
    given: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    return Settings(**given)


def single_case(workload: Workload, methods: Sequence[str], settings: Settings) -> Sweep:
    """A sweep of one point."""
    return Sweep(workload.name, "", workload.parameters(), {}, tuple(methods), settings)


def steps_of_sweep(sweep: Sweep, scale: float = 1.0) -> int:
    return sum(steps_of(sweep.methods, case.workload, sweep.settings) for case in sweep.cases(scale))


def run_sweep(
    sweep: Sweep,
    scale: float = 1.0,
    tell: Tell | None = None,
    make_corpus: MakeCorpus | None = None,
) -> Result:
    """Run every case; the raw measurements with all that is needed to read them later."""
    runs = []
    for case in sweep.cases(scale):
        corpus = make_corpus(case.workload) if make_corpus else None
        measured = run_case(sweep.methods, case.workload, sweep.settings, corpus, tell)
        runs.append({"varied": case.varied} | measured)
    about = {
        "name": sweep.name,
        "about": sweep.about,
        "varied": list(sweep.vary),
        "scale": scale,
        "settings": dataclasses.asdict(sweep.settings),
    }
    peaks = [run["memory"][when] for run in runs for when in ("earlier_peak_bytes", "peak_bytes")]
    return Result(about, surroundings(peaks), runs)
