"""The source distribution and the wheel install into an empty environment and work; extras install separately."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SMOKE = """
import importlib.util, nearcast as nc
for absent in ("pyspark", "pandas", "matplotlib", "redis"):
    assert importlib.util.find_spec(absent) is None, absent
index = nc.build_index({"id": [1], "expression": ["hot OR dog"], "region": ["circle(0, 0, 5km)"]}, method="brute")
found = index.match({"id": [7], "text": ["Hot!"], "x": [0.0], "y": [0.0]})
assert found.to_pylist() == [{"message": 7, "subscription": 1}]
assert nc.Analyser.named("english").tokens("the running dogs") == ["run", "dog"]
print(nc.__file__)
"""


def run(*command: object) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, env=environment, cwd="/")
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The built packages, by ending, and an environment with the wheel."""
    folder = tmp_path_factory.mktemp("packages")
    run(sys.executable, "-m", "venv", folder / "env")
    pip = [folder / "env" / "bin" / "python", "-m", "pip", "--disable-pip-version-check"]
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", folder, ROOT)
    backend = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    run(sys.executable, "-m", "venv", folder / "build")
    run(folder / "build" / "bin" / "python", "-m", "pip", "install", *backend)
    source = "import os, sys; os.chdir(sys.argv[1]); from hatchling.build import build_sdist; build_sdist(sys.argv[2])"
    run(folder / "build" / "bin" / "python", "-c", source, ROOT, folder)
    wheel, archive = next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))
    run(*pip, "install", "--constraint", ROOT / "constraints.txt", wheel)
    return {"whl": wheel, "tar.gz": archive, "env": folder / "env"}


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment(packages: dict[str, Path]) -> None:
    found = run(packages["env"] / "bin" / "python", "-c", SMOKE)
    assert str(packages["env"]) in found
    assert "Example" in run(packages["env"] / "bin" / "nearcast", "match", "--help")


@pytest.mark.slow
def test_the_packages_carry_data_and_licences_and_no_tests(packages: dict[str, Path]) -> None:
    names = zipfile.ZipFile(packages["whl"]).namelist()
    for wanted in ("LICENSE", "LICENSES.md", "stop_words.toml", "calgary_traffic_2024.csv.gz", "py.typed"):
        assert any(name.endswith(wanted) for name in names), wanted
    assert not any(name.startswith("tests") for name in names)
    with tarfile.open(packages["tar.gz"]) as archive:
        within = archive.getnames()
    assert any(name.endswith("pyproject.toml") for name in within) and any(name.endswith("LICENSE") for name in within)


@pytest.mark.slow
def test_the_source_distribution_makes_the_same_wheel(packages: dict[str, Path], tmp_path: Path) -> None:
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", tmp_path, packages["tar.gz"])
    made = zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist()
    assert set(made) == set(zipfile.ZipFile(packages["whl"]).namelist())


@pytest.mark.slow
@pytest.mark.parametrize("extra", ["fast", "segmentation", "pictures", "spark", "redis", "kafka"])
def test_each_extra_can_be_installed_by_itself(packages: dict[str, Path], extra: str) -> None:
    wanted = f"{packages['whl']}[{extra}]"
    pip = [packages["env"] / "bin" / "python", "-m", "pip", "--disable-pip-version-check"]
    assert "Would install" in run(*pip, "install", "--dry-run", "--constraint", ROOT / "constraints.txt", wanted)
