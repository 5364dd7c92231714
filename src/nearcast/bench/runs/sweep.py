"""Sweeps: a TOML file names a workload, up to two parameters to vary, the methods, and how to measure."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from nearcast.bench.runs.case import OnStep, Settings, known_methods
from nearcast.bench.runs.environment import describe_environment
from nearcast.bench.runs.results import Result
from nearcast.bench.runs.run_case import run_case, steps_of
from nearcast.bench.toml_files import find_toml, require_known, shipped_names, table_of
from nearcast.bench.workloads.corpus import Corpus
from nearcast.bench.workloads.workload import PRESETS, Workload, workload_of
from nearcast.errors import InvalidInput

_FIELDS = ("about", "also", "methods", "name", "run", "vary", "workload")
_PART_FIELDS = ("methods", "run", "vary", "workload")
_MOST_VARIED = 2

MakeCorpus = Callable[[Workload], Corpus]


class SweepCase(NamedTuple):
    """One point of a sweep: the values of the varied parameters, the resulting workload, and how it is measured."""

    varied: dict[str, Any]
    workload: Workload
    methods: tuple[str, ...]
    settings: Settings


@dataclass(frozen=True)
class Sweep:
    """`vary` maps a parameter of the workload (or `base`, the preset) to its values. All combinations are run.

    `also` are further sweeps over the same parameters that are part of this one.
    """

    name: str
    about: str = ""
    workload: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    vary: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)
    methods: tuple[str, ...] = ()
    settings: Settings = dataclasses.field(default_factory=Settings)
    also: tuple[Sweep, ...] = ()

    @property
    def parts(self) -> tuple[Sweep, ...]:
        """This sweep and those that are part of it."""
        return (self, *self.also)

    def cases(self, scale: float = 1.0) -> list[SweepCase]:
        """Every combination; the first varied parameter changes slowest. The cases of `also` come last."""
        cases = []
        for values in itertools.product(*self.vary.values()):
            varied = dict(zip(self.vary, values, strict=True))
            parameters = dict(self.workload) | varied
            workload = workload_of({"name": str(parameters.get("base", self.name))} | parameters)
            if scale != 1.0:
                workload = workload.scaled(scale)
                varied = {key: workload.parameters().get(key, value) for key, value in varied.items()}
            cases.append(SweepCase(varied, workload, self.methods, self.settings))
        return cases + [case for part in self.also for case in part.cases(scale)]


def shipped_sweeps() -> list[Sweep]:
    """The sweeps that come with nearcast, sorted by name."""
    return [find_sweep(name) for name in shipped_names("sweeps")]


def find_sweep(name: str | os.PathLike[str]) -> Sweep:
    """A shipped sweep by name, or the sweep in a TOML file."""
    return sweep_of(find_toml(name, "sweeps"))


def sweep_of(data: Mapping[str, Any]) -> Sweep:
    """The sweep that a file describes. Unknown entries and unusable values raise InvalidInput."""
    require_known(data, _FIELDS, "a sweep")
    made = _part_of(data)
    also = data.get("also", [])
    if not isinstance(also, list):
        raise InvalidInput("'also' is a list of tables: write [[also]] above each")
    made = dataclasses.replace(made, also=tuple(_further_part(made, part) for part in also))
    made.cases()  # rejects unknown parameters and values now, not an hour into the run
    return made


def _further_part(first: Sweep, data: Any) -> Sweep:
    require_known(data, _PART_FIELDS, "a part of a sweep ('also')")
    made = _part_of({"name": first.name} | dict(data))
    if list(made.vary) != list(first.vary):
        raise InvalidInput(f"a part of a sweep varies what the sweep varies: {', '.join(first.vary) or 'nothing'}")
    return made


def _part_of(data: Mapping[str, Any]) -> Sweep:
    workload, vary, run = (table_of(data, name) for name in ("workload", "vary", "run"))
    if workload.get("base", "A") not in PRESETS:  # checked here too: a varied base replaces it
        raise InvalidInput(f"no workload '{workload['base']}' to base on; there are {', '.join(PRESETS)}")
    if len(vary) > _MOST_VARIED:
        raise InvalidInput(f"a sweep varies at most {_MOST_VARIED} parameters; this one varies {', '.join(vary)}")
    for key, values in vary.items():
        if not isinstance(values, list) or not values:
            raise InvalidInput(f"the values of a varied parameter are a list; those of '{key}' are {values!r}")
    made = Sweep(str(data["name"]), str(data.get("about", "")), workload, vary, _methods_of(data), settings_of(run))
    known_methods(made.methods)
    return made


def _methods_of(data: Mapping[str, Any]) -> tuple[str, ...]:
    methods = data.get("methods", [])
    if not isinstance(methods, list | tuple) or not all(isinstance(name, str) for name in methods):
        raise InvalidInput("a sweep's 'methods' is a list of names; leave it out for all methods")
    return tuple(methods)


def settings_of(values: Mapping[str, Any]) -> Settings:
    """The settings that a file gives. Unknown names and unusable values raise InvalidInput."""
    require_known(values, [field.name for field in dataclasses.fields(Settings)], "a run")
    given: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    return Settings(**given)


def single_case(workload: Workload, methods: Sequence[str], settings: Settings) -> Sweep:
    """A sweep of one case."""
    return Sweep(workload.name, "", workload.parameters(), {}, tuple(methods), settings)


def steps_of_sweep(sweep: Sweep, scale: float = 1.0) -> int:
    return sum(steps_of(case.methods, case.workload, case.settings) for case in sweep.cases(scale))


def run_sweep(
    sweep: Sweep, scale: float = 1.0, on_step: OnStep | None = None, make_corpus: MakeCorpus | None = None
) -> Result:
    """Run every case; return the raw measurements with everything that is needed to read them later."""
    runs = []
    for case in sweep.cases(scale):
        corpus = make_corpus(case.workload) if make_corpus else None
        measured = run_case(case.methods, case.workload, case.settings, corpus, on_step)
        runs.append({"varied": case.varied} | measured)
    about = {
        "name": sweep.name,
        "about": sweep.about,
        "varied": list(sweep.vary),
        "scale": scale,
        "settings": dataclasses.asdict(sweep.settings),
    }
    peaks = [run["memory"][when] for run in runs for when in ("earlier_peak_bytes", "peak_bytes")]
    return Result(about, describe_environment(peaks), runs)
