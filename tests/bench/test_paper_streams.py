"""The experiments of Skype and of the AP+-tree: every figure is there, and a toy run goes through to the pictures."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from nearcast.bench.papers.claims import verdicts
from nearcast.bench.papers.page import BEGIN, END, page
from nearcast.bench.papers.paper import find_paper, paper_of
from nearcast.bench.papers.result import load_paper_result
from nearcast.bench.papers.schedule import schedule_runs
from nearcast.cli.main import app
from nearcast.errors import InvalidInput

SKYPE, MOVING = find_paper("skype"), find_paper("ap-plus-tree")


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The folders of two toy runs, without real data."""
    chosen = {"skype": "8,10,table-2,12-arrival,12-expiry", "ap-plus-tree": "19-update,20-move,21-move,26-traffic"}
    folders = {}
    for name, figures in chosen.items():
        folder = folders[name] = tmp_path_factory.mktemp(name)
        page_path = folder / "own.md"
        page_path.write_text(f"# Above\n{BEGIN}\n{END}\nBelow\n")
        options = ("--figures", figures, "--scale", "0.005", "--data", folder, "--out", folder, "--page", page_path)
        done = run("bench", "paper", name, *options)
        assert done.exit_code == 0, done.output
    return folders


def test_every_figure_of_skype_is_there_and_figures_share_runs():
    numbers = {figure.id.split("-")[0] for figure in SKYPE.figures if figure.id[0].isdigit()}
    assert numbers == {str(number) for number in range(6, 17)}
    schedule = schedule_runs(SKYPE, SKYPE.figures, 0.01)
    runs = {name: [part.run for part in parts] for name, parts in schedule.parts.items()}
    assert runs["8"] == runs["9"] == runs["10"] == runs["table-2"], "one run for each data set"
    assert not any(schedule.missing.values()), "every method and setting can run"
    assert runs["11-arrival"] == runs["11-expiry"] and len(set(runs["11-arrival"])) == 5 * 2


def test_every_figure_of_moving_subscriptions_is_there():
    numbers = {figure.id.split("-")[0] for figure in MOVING.figures if figure.id[0].isdigit()}
    assert numbers == {str(number) for number in range(19, 28)}
    schedule = schedule_runs(MOVING, MOVING.figures, 0.01)
    assert not any(schedule.missing.values()), "every method and variant can run"
    for figure in MOVING.figures:
        if figure.id.startswith(("26", "27")):
            assert "Elaps" in figure.note and "not to be had" in figure.note
    assert "Table 3" in MOVING.about and "Ours:" in MOVING.about, "the defaults that are lost are stated"


@pytest.mark.parametrize("paper", [SKYPE, MOVING])
def test_every_point_covers_500_messages_and_moves_in_several_rounds(paper):
    for run in schedule_runs(paper, paper.figures, 1.0).runs:
        workload = run.workload
        assert run.settings.rounds >= 4
        if workload.kind == "top":
            assert workload.messages >= 500
        else:
            steps = run.settings.rounds * workload.steps
            assert workload.window == 0 or steps * workload.per_step >= 500
            assert steps * workload.mobility * workload.subscriptions >= 500 or workload.subscriptions <= 10


def test_real_data_stand_beside_made_up_data():
    for paper in (SKYPE, MOVING):
        real = {name for name, values in paper.data.items() if values.get("messages_file")}
        assert real and real < set(paper.data)
        assert any(real & set(figure.data) and set(figure.data) - real for figure in paper.figures)


def test_a_toy_run_gives_points_with_their_rounds_and_verdicts(results):
    for name, paper in (("skype", SKYPE), ("ap-plus-tree", MOVING)):
        result = load_paper_result(results[name] / "result.json")
        for figure in result.figures(paper):
            points = result.points(figure)
            assert {point.method for point in points} == set(figure.methods)
            assert all(point.low <= point.value <= point.high for point in points)
            assert all(len(point.rounds) == 5 - (paper is MOVING) for point in points), figure.id
            for claim in figure.claims:
                found = verdicts(figure, claim, points)
                assert found or not (claim.order or claim.values or claim.trend), claim.says


def test_a_toy_run_goes_through_to_pictures_and_a_page(results):
    for name, count in (("skype", 5), ("ap-plus-tree", 4)):
        pictures = list(results[name].glob("*.png"))
        assert len(pictures) == count and all(each.read_bytes()[:4] == b"\x89PNG" for each in pictures)
        text = (results[name] / "own.md").read_text()
        assert text.startswith("# Above") and text.endswith("Below\n")
        for picture in pictures:
            assert f"({picture.name})" in text
        assert "the shipped sample" in text, "real data were not there, and the page says so"
        assert "rounds" in text and "| the paper says | we see | holds |" in text


def test_the_page_names_the_numbers_of_the_papers_table(results):
    result = load_paper_result(results["skype"] / "result.json")
    text = page(SKYPE, result, {})
    assert "`skype` 35.0" in text and "`skype refill=kmax` 58.0" in text


def test_an_option_that_a_method_does_not_have_is_left_out_by_name():
    data = {"toy": {"kind": "top", "subscriptions": 10, "window": 10}}
    figure = {"id": "1", "title": "t", "data": "toy", "measure": "arrival", "methods": ["skype", "skype colour=3"]}
    made = paper_of({"name": "p", "data": data, "figures": [figure]})
    schedule = schedule_runs(made, made.figures, 1.0)
    assert "colour" in schedule.missing["1"]["skype colour=3"] and schedule.runs[0].methods == ["skype"]


@pytest.mark.parametrize(
    ("kind", "more", "says"),
    [
        ("top", {"measure": "move"}, "measure"),
        ("moving", {"measure": "buffer"}, "measure"),
        ("match", {"measure": "arrival"}, "needs data of kind top or moving"),
        ("top", {"claims": [{"says": "s", "order": ["skype"], "at_least": 0.5}]}, "at_least"),
    ],
)
def test_figures_of_streams_that_cannot_be_are_refused(kind, more, says):
    figure = {"id": "1", "title": "t", "data": "toy", "methods": ["skype"], "measure": "arrival"} | more
    with pytest.raises(InvalidInput, match=says):
        paper_of({"name": "p", "data": {"toy": {"kind": kind}}, "figures": [figure]})


def test_the_command_prints_json_with_the_claims(tmp_path):
    done = run("bench", "paper", "skype", "--figures", "9", "--scale", "0.002", "--data", tmp_path, "--json")
    document = json.loads(done.stdout)
    assert document["paper"] == "skype" and {each["figure"] for each in document["claims"]} == {"9"}
    assert document["runs"][0]["streams"][0]["values"]["arrival"]
