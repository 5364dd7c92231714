"""Every form of a place, in the library, the engine and the command, against arithmetic on the numbers that went in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from tests.reference import great_circle_km
from typer.testing import CliRunner

import nearcast as nc
from nearcast.cli.main import app
from nearcast.geo.space import LONLAT
from nearcast.sharding.normalise import normalise_subscriptions
from nearcast.tables import Dialect, as_arrow, write_table
from nearcast.text.analyser import Analyser

pyproj = pytest.importorskip("pyproj")
Triangle = list[tuple[int, int]]
RNG = np.random.default_rng(8)


def turn(a: tuple[int, int], b: tuple[int, int], p: tuple[int, int]) -> int:
    return (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0])


def holds(triangle: Triangle, point: tuple[int, int]) -> bool:
    """Whether the closed triangle has the point, in whole numbers."""
    turns = [turn(triangle[k], triangle[(k + 1) % 3], point) for k in range(3)]
    return min(turns) >= 0 or max(turns) <= 0


def triangles(n: int) -> list[Triangle]:
    drawn = [[tuple(map(int, corner)) for corner in RNG.integers(-6, 7, (3, 2))] for _ in range(4 * n)]
    return [each for each in drawn if turn(*each) != 0][:n]  # type: ignore[arg-type]


TRIANGLES = triangles(30)
POINTS = [(x, y) for x in range(-7, 8) for y in range(-7, 8)]
MESSAGES = pa.table(
    {"id": range(len(POINTS)), "text": ["a"] * len(POINTS), "x": [p[0] for p in POINTS], "y": [p[1] for p in POINTS]}
)
INSIDE = [(m, s) for m, p in enumerate(POINTS) for s, each in enumerate(TRIANGLES) if holds(each, p)]


def ring(triangle: Triangle) -> list[list[float]]:
    return [[float(x), float(y)] for x, y in [*triangle, triangle[0]]]


SHAPES = [shapely.Polygon(each) for each in TRIANGLES]
DICTS: list[Any] = [{"type": "Polygon", "coordinates": [ring(each)]} for each in TRIANGLES]
WKBS = [shapely.to_wkb(each) for each in SHAPES]
WKTS = [each.wkt for each in SHAPES]


class Feature:
    """An object with a geometry, as many libraries have it."""

    def __init__(self, geometry: dict[str, Any]) -> None:
        self.__geo_interface__ = geometry


def geoarrow(kind: str, values: pa.Array, name: str = "region", crs: Any = None) -> pa.Table:
    metadata = {"ARROW:extension:name": kind} | (
        {"ARROW:extension:metadata": json.dumps({"crs": crs})} if crs is not None else {}
    )
    fields = [pa.field("id", pa.int64()), pa.field("expression", pa.string())]
    fields.append(pa.field(name, values.type, metadata=metadata))
    return pa.table([pa.array(range(len(values))), pa.array(["a"] * len(values)), values], schema=pa.schema(fields))


def plain(values: Any) -> dict[str, Any]:
    return {"id": [*range(len(TRIANGLES))], "expression": ["a"] * len(TRIANGLES), "region": values}


class GeoFrame:
    """What a GeoDataFrame offers."""

    crs = "EPSG:4326"

    def to_arrow(self, *, index: bool, geometry_encoding: str) -> pa.Table:
        assert not index and geometry_encoding == "WKB"
        return geoarrow("geoarrow.wkb", pa.array(WKBS), "geometry", {"id": {"authority": "EPSG", "code": 4326}})


class MessageFrame(GeoFrame):
    def __init__(self, geometries: list[Any]) -> None:
        self.geometries = geometries

    def to_arrow(self, *, index: bool, geometry_encoding: str) -> pa.Table:
        values = pa.array([shapely.to_wkb(each) for each in self.geometries])
        return geoarrow("geoarrow.wkb", values, "geometry", "EPSG:4326").rename_columns(["id", "text", "geometry"])


NESTED = pa.array([[[{"x": x, "y": y} for x, y in ring(each)]] for each in TRIANGLES])
LISTS = pa.array([[ring(each)] for each in TRIANGLES])
FORMS: dict[str, Callable[[], Any]] = {
    "geojson": lambda: plain([json.dumps(each) for each in DICTS]),
    "dicts": lambda: plain(DICTS),
    "dicts of two sorts": lambda: plain(
        [*DICTS[:-1], {"type": "MultiPolygon", "coordinates": [DICTS[-1]["coordinates"]]}]
    ),
    "struct": lambda: pa.table(plain(pa.array(DICTS))),
    "wkt": lambda: plain(WKTS),
    "wkt with srid": lambda: plain([f"SRID=4326;{each}" for each in WKTS]),
    "wkb": lambda: plain(WKBS),
    "ewkb": lambda: plain([shapely.to_wkb(shapely.set_srid(each, 4326), include_srid=True) for each in SHAPES]),
    "shapely": lambda: plain(SHAPES),
    "geo interface": lambda: plain([Feature(each) for each in DICTS]),
    "of all sorts": lambda: plain([*WKTS[:5], *WKBS[5:10], *SHAPES[10:15], *DICTS[15:]]),
    "geoarrow.wkb": lambda: geoarrow("geoarrow.wkb", pa.array(WKBS)),
    "geoarrow.wkt": lambda: geoarrow("geoarrow.wkt", pa.array(WKTS), "geometry"),
    "geoarrow.polygon": lambda: geoarrow("geoarrow.polygon", NESTED),
    "geoarrow.polygon of lists": lambda: geoarrow("geoarrow.polygon", LISTS, crs="OGC:CRS84"),
    "geoarrow.multipolygon": lambda: geoarrow(
        "geoarrow.multipolygon", pa.array([[each] for each in NESTED.to_pylist()])
    ),
    "GeoDataFrame": GeoFrame,
}


def pairs_of(found: pa.Table) -> list[tuple[int, int]]:
    return [*zip(found["message"].to_pylist(), found["subscription"].to_pylist(), strict=True)]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_polygon_means_the_same(form: str) -> None:
    table = FORMS[form]()
    assert pairs_of(nc.build_index(table, "brute").match(MESSAGES)) == INSIDE
    assert pairs_of(nc.build_index(table, "pyramid").match(MESSAGES)) == INSIDE
    dialect = Dialect(Analyser(), LONLAT)
    rows = normalise_subscriptions(as_arrow(table), pa.array(range(len(TRIANGLES))), dialect)
    assert pairs_of(nc.build_index(rows, "brute").match(MESSAGES)) == INSIDE, "as shards and streams store it"


@pytest.mark.parametrize(
    ("form", "file"),
    [("wkt", "s.csv"), ("geojson", "s.csv"), ("dicts", "s.jsonl"), ("wkb", "s.parquet"), ("geoarrow.wkb", "s.parquet")],
)
def test_files_go_through_the_command(form: str, file: str, tmp_path: Path) -> None:
    if file.endswith(".jsonl"):
        rows = [{"id": k, "expression": "a", "region": each} for k, each in enumerate(DICTS)]
        (tmp_path / file).write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        write_table(as_arrow(FORMS[form]()), tmp_path / file)
    assert command(tmp_path, tmp_path / file) == INSIDE


def command(folder: Path, subscriptions: Path, messages: pa.Table = MESSAGES) -> list[tuple[int, int]]:
    """The pairs that `nearcast match` finds."""
    write_table(messages, folder / "m.parquet")
    done = CliRunner().invoke(
        app, ["match", str(subscriptions), str(folder / "m.parquet"), "--out", str(folder / "out.parquet")]
    )
    assert done.exit_code == 0, done.output
    return pairs_of(as_arrow(folder / "out.parquet"))


@pytest.mark.parametrize("values", [DICTS, WKTS, WKBS, SHAPES, [Feature(each) for each in DICTS]])
def test_an_engine_takes_every_form(values: list[Any]) -> None:
    engine = nc.Engine("brute")
    for number, each in enumerate(values):
        engine.subscribe("a", region=each, id=number)
    found = [(m, hit.subscription) for m, point in enumerate(POINTS) for hit in engine.publish("a", at=point)]
    assert found == INSIDE


def test_points_of_a_geodataframe_are_messages() -> None:
    index = nc.build_index(plain(WKTS), "brute")
    assert pairs_of(index.match(MessageFrame([shapely.Point(*each) for each in POINTS]))) == INSIDE
    with pytest.raises(nc.InvalidInput, match="the place of a message is a point"):
        index.match(MessageFrame(SHAPES))


def test_other_reference_systems_are_reprojected() -> None:
    away = pyproj.Transformer.from_crs("OGC:CRS84", "EPSG:3857", always_xy=True).transform
    there = shapely.transform(np.array(SHAPES, object), lambda x, y: away(x, y), interleaved=False)
    crs = pyproj.CRS("EPSG:3857").to_json_dict()
    texts = [f"SRID=3857;{shapely.to_wkt(each, rounding_precision=-1)}" for each in there]
    bytes_ = [shapely.to_wkb(shapely.set_srid(each, 3857), include_srid=True) for each in there]
    is_on_border = {
        (m, s)
        for m, p in enumerate(POINTS)
        for s, each in enumerate(TRIANGLES)
        if 0 in [turn(each[k], each[(k + 1) % 3], p) for k in range(3)]
    }
    wanted = [pair for pair in INSIDE if pair not in is_on_border]  # rounding moves borders
    for table in (
        geoarrow("geoarrow.wkb", pa.array([shapely.to_wkb(each) for each in there]), crs=crs),
        geoarrow("geoarrow.wkb", pa.array([shapely.to_wkb(each) for each in there]), crs="EPSG:3857"),
        plain(texts),
        plain(bytes_),
    ):
        found = pairs_of(nc.build_index(table, "brute").match(MESSAGES))
        assert [pair for pair in found if pair not in is_on_border] == wanted


def test_a_reference_system_that_nobody_knows_is_refused() -> None:
    with pytest.raises(nc.InvalidInput, match="EPSG:999999 is no coordinate reference system"):
        nc.build_index(geoarrow("geoarrow.wkb", pa.array(WKBS), crs="EPSG:999999"))


def test_without_pyproj_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyproj", None)
    with pytest.raises(nc.NearcastError, match=r"EPSG:3857.*pip install 'nearcast\[crs\]'"):
        nc.build_index(geoarrow("geoarrow.wkb", pa.array(WKBS), crs="EPSG:3857"))


# -- circles and boxes

KM = {"km": 1.0, "radius_km": 1.0, "m": 0.001, "miles": 1.609344}


@pytest.mark.parametrize("unit", KM)
@pytest.mark.parametrize("names", [("x", "y"), ("lon", "lat"), ("lng", "lat"), ("longitude", "latitude")])
def test_points_with_a_radius_are_circles(unit: str, names: tuple[str, str], tmp_path: Path) -> None:
    rng = np.random.default_rng(len(unit))
    centres = np.column_stack([rng.choice([-180.0, 179.5, 3.25], 40), rng.uniform(-89, 89, 40)])
    places = np.column_stack([rng.choice([-179.75, 180.0, 3.0], 60), rng.uniform(-90, 90, 60)])
    radii = rng.uniform(0, 3000, 40) / KM[unit]
    own = {"id": np.arange(40), "expression": ["a"] * 40, unit: radii, names[0]: centres[:, 0], names[1]: centres[:, 1]}
    messages = {"id": np.arange(60), "text": ["a"] * 60, names[0]: places[:, 0], names[1]: places[:, 1]}
    distances = np.array([[great_circle_km(*place, *centre) for centre in centres] for place in places])
    assert (np.abs(distances - radii * KM[unit]) > 1e-6).all(), "no draw lies on a border"
    wanted = [tuple(pair) for pair in np.argwhere(distances <= radii * KM[unit]).tolist()]
    assert pairs_of(nc.build_index(own, "brute").match(messages)) == wanted
    write_table(pa.table(own), tmp_path / "s.csv")
    assert command(tmp_path, tmp_path / "s.csv", pa.table(messages)) == wanted
    engine = nc.Engine("brute")
    for number in range(40):
        given: dict[str, Any] = {unit.removeprefix("radius_"): radii[number]}
        engine.subscribe("a", near=centres[number], id=number, **given)
    found = [(m, hit.subscription) for m, at in enumerate(places) for hit in engine.publish("a", at=at)]
    assert found == wanted


def test_boxes_over_the_antimeridian(tmp_path: Path) -> None:
    bounds = [(170, 0, -170, 5), (179, -90, -180, 90), (180, 0, -180, 3), (100, 1, -80, 2), (-5, 0, 5, 4)]
    points = [(x, y) for x in (-180, -179, -170, -169, -80, -79, 0, 99, 100, 170, 180) for y in (-90, 0, 2, 5, 90)]
    wanted = [
        (m, s)
        for m, (x, y) in enumerate(points)
        for s, (x0, y0, x1, y1) in enumerate(bounds)
        if y0 <= y <= y1 and (x0 <= x <= x1 if x0 <= x1 else x >= x0 or x <= x1)
    ]
    columns = dict(zip(("xmin", "ymin", "xmax", "ymax"), map(list, zip(*bounds, strict=True)), strict=True))
    own: dict[str, Any] = {"id": [*range(5)], "expression": ["a"] * 5}
    texts = [f"box({', '.join(map(str, each))})" for each in bounds]
    jsons = [json.dumps({"type": "Box", "coordinates": each}) for each in bounds]
    boxes = pa.array([dict(zip(("xmin", "ymin", "xmax", "ymax"), map(float, each), strict=True)) for each in bounds])
    messages = {"id": [*range(len(points))], "text": ["a"] * len(points), "x": [p[0] for p in points]}
    messages |= {"y": [p[1] for p in points]}
    tables = (own | columns, own | {"region": texts}, own | {"region": jsons}, geoarrow("geoarrow.box", boxes))
    for table in tables:
        for method in ("brute", "pyramid"):
            assert pairs_of(nc.build_index(table, method).match(messages)) == wanted
    write_table(as_arrow(tables[0]), tmp_path / "s.csv")
    assert command(tmp_path, tmp_path / "s.csv", pa.table(messages)) == wanted
    engine = nc.Engine("brute")
    for number, each in enumerate(bounds):
        engine.subscribe("a", box=each, id=number)
    engine.save(tmp_path / "engine")
    for each in (engine, nc.open_engine(tmp_path / "engine")):
        assert [(m, hit.subscription) for m, at in enumerate(points) for hit in each.publish("a", at=at)] == wanted
    assert engine.explain(0, "a", at=(0, 0)).distance == pytest.approx(great_circle_km(0, 0, 170, 5), rel=1e-9)


@pytest.mark.parametrize(
    ("columns", "column", "reason"),
    [
        ({"km": [-1.0]}, "km", "a radius is a number from 0 on"),
        ({"km": [float("nan")]}, "km", "a radius is a number from 0 on"),
        ({"km": ["3km"]}, "km", "'3km' is not a number"),
        ({"km": [1.0], "m": [1.0]}, "m", "both km and m; give one of them"),
        ({"km": [1.0], "region": ["world"]}, "km", "both a region and km; give one of them"),
        ({"km": [1.0], "x": [None]}, "km", "km needs a point: x and y"),
        ({"km": [1.0], "x": [181.0]}, "x", "a longitude lies between"),
        ({"region": ["box(1, 2, 3)"]}, "region", "write box(xmin, ymin, xmax, ymax)"),
        ({"region": ["box(-73, 1, -74, 2)"]}, "region", "goes 359 degrees around the globe; swap xmin and xmax"),
        ({"region": ["POLYGON ((0 0, 1 1"]}, "region", "cannot read the WKT"),
        ({"region": ["LINESTRING (0 0, 1 1)"]}, "region", "the type 'LineString' is not a region"),
        ({"region": [b"rubbish"]}, "region", "no WKB"),
        ({"region": [3]}, "region", "a region is text"),
    ],
)
def test_mistakes_are_named(columns: dict[str, Any], column: str, reason: str) -> None:
    table = {"id": [1], "expression": ["a"], "x": [0.0], "y": [0.0]} | columns
    with pytest.raises(nc.InvalidInput) as raised:
        nc.build_index(table)
    assert raised.value.column == column and reason in raised.value.reason
