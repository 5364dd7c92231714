"""The experiments of a paper as a Markdown page: pictures, our figures, and the paper's claims beside our results."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nearcast.bench.papers.claims import values_text, verdicts
from nearcast.bench.papers.paper import Claim, Figure, Paper
from nearcast.bench.papers.result import UNITS, PaperResult, Point
from nearcast.bench.reports.picture import Labels, Mark, save_panels
from nearcast.bench.reports.tables import format_number, markdown_table, where_measured
from nearcast.errors import InvalidInput

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
"""The figures between these lines of a page are replaced; the rest of the page is kept."""


def picture_name(figure: Figure) -> str:
    return f"{'fig-' if figure.id[:1].isdigit() else ''}{figure.id}.png"


def page(paper: Paper, result: PaperResult, pictures: Mapping[str, str]) -> str:
    """The page without its title. `pictures` are links by the id of the figure."""
    command = f"`nearcast bench paper {paper.name}" + (f" --scale {result.scale:g}`" if result.scale != 1 else "`")
    reading = _READING_STREAMS if any("streams" in run for run in result.runs) else _READING
    parts = [f"Made by {command}. {where_measured(result.surroundings)}", paper.about.strip(), sources(result), reading]
    parts += [summary(paper, result)]
    parts += [_section(figure, result, pictures.get(figure.id)) for figure in result.figures(paper)]
    return "\n\n".join(part for part in parts if part) + "\n"


_READING = (
    "How to read: times are CPU time in one thread, messages in one batch, the median of several rounds, all methods "
    "in turns. Each figure covers the messages that all of its methods had: a slow method gets fewer messages, so that "
    "it stays within its time budget. `a` → `b` 1.2×: `b` costs 1.2 times as much as `a` (mean over the axis). "
    "Holds: *level* is a difference within 5 %. All methods found the same pairs."
)

_READING_STREAMS = (
    "How to read: times are CPU time in one thread, the mean of several rounds, all methods in turns on the same "
    "stream. Numbers in brackets, and bars in pictures, are the least and the greatest round. `a` → `b` 1.2× "
    "(1.1–1.3): `b` costs 1.2 times as much as `a`, in single rounds 1.1 to 1.3 times (mean over the axis). Holds: "
    "*yes* and *no* need a difference of more than 5 % that every round shows; *level* is the rest. All methods gave "
    "the same changes."
)


def sources(result: PaperResult) -> str:
    """Where the messages of real data sets came from."""
    named = {run["workload"]["name"]: run["source"] for run in result.runs if run.get("source", "drawn") != "drawn"}
    return f"Real data: {'; '.join(f'*{name}* is {file}' for name, file in named.items())}." if named else ""


def summary(paper: Paper, result: PaperResult) -> str:
    """All claims with their verdicts, in one table."""
    rows = [["figure", "the paper says", "holds"]]
    for figure in result.figures(paper):
        points = result.points(figure)
        rows += [[figure.name, claim.says, summarise_verdicts(figure, claim, points)] for claim in figure.claims]
    return _table(rows) if len(rows) > 1 else ""


def summarise_verdicts(figure: Figure, claim: Claim, points: Sequence[Point]) -> str:
    """The verdict on a claim: "yes", "level", "no, by 2×", or the number of panels with each of these."""
    if not (claim.order or claim.values or claim.trend):
        return "-"
    found = verdicts(figure, claim, points)
    if not found:
        return "not measured"
    if len(found) == 1:
        return found[0].holds
    answers = Counter(verdict.holds.split(",")[0] for verdict in found)
    if len(answers) == 1 and "no" not in answers:
        return found[0].holds
    counted = [f"{answer} in {answers[answer]}" for answer in ("yes", "level", "no") if answers[answer]]
    return f"{', '.join(counted)} of {len(found)} groups"


def _section(figure: Figure, result: PaperResult, picture: str | None) -> str:
    points = result.points(figure)
    place = f" ({figure.place})" if figure.place else ""
    parts = [f"### {figure.name}: {figure.title}", f"![{figure.name}]({picture})" if picture else ""]
    parts += [_measured(figure, result, points) + place + ".", figure.note.strip(), left_out(figure, result)]
    parts += _tables(figure, points)
    parts += [_claims(figure, points)]
    return "\n\n".join(part for part in parts if part)


def _measured(figure: Figure, result: PaperResult, points: Sequence[Point]) -> str:
    """What a figure covers: its unit, data sets, and numbers of subscriptions and messages."""
    runs = [(part.data, result.runs[part.run]["workload"]) for part in result.parts[figure.id]]
    sizes = sorted({workload["subscriptions"] for _, workload in runs})
    if not sizes:
        return "Not measured"
    messages = sorted({point.messages for point in points if point.messages})
    with_messages = f", {_span(messages)} messages in each group" if messages else ""
    names = " and ".join(dict.fromkeys(f"*{data}*" for data, _ in runs))
    if "window" in runs[0][1]:
        return f"In {UNITS[figure.measure]}; {names}, {_span(sizes)} subscriptions, {_stream_counts(runs, points)}"
    return f"In {UNITS[figure.measure]}; {names}, {_span(sizes)} subscriptions{with_messages}"


def _stream_counts(runs: Sequence[tuple[str, Mapping[str, Any]]], points: Sequence[Point]) -> str:
    """The live messages of a stream, and how many messages, moves and rounds a point covers."""
    live = sorted({workload["window"] for _, workload in runs})
    counted = [("messages", sorted({point.messages for point in points if point.messages}))]
    counted += [("moves", sorted({point.moves for point in points if point.moves}))]
    covered = [f"{_span(counts)} {what}" for what, counts in counted if counts]
    rounds = max((len(point.rounds) for point in points), default=0)
    return f"{_span(live)} live messages; a point covers {' and '.join(covered)} in {max(1, rounds)} rounds"


def _span(counts: Sequence[int]) -> str:
    return f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"


def left_out(figure: Figure, result: PaperResult) -> str:
    missing = result.missing.get(figure.id, {})
    return f"Left out: {'; '.join(f'`{label}` ({why})' for label, why in missing.items())}." if missing else ""


def _tables(figure: Figure, points: Sequence[Point]) -> list[str]:
    """One table for each panel: a row for each method, a column for each position on the axis."""
    tables = []
    for panel in dict.fromkeys(point.panel for point in points):
        own = [point for point in points if point.panel == panel]
        places = list(dict.fromkeys(point.label for point in own))
        values = {(point.method, point.label): format_point(point) for point in own}
        head = f"{panel}, {figure.axis_name}" if panel else figure.axis_name
        rows = [[head, *places]]
        for method in dict.fromkeys(point.method for point in own):
            rows.append([f"`{method}`", *(values.get((method, place), "-") for place in places)])
        tables.append(_table(rows, numbers=True))
    return tables


def format_point(point: Point) -> str:
    """The value; if rounds differ, with the least and the greatest."""
    if point.low == point.high:
        return format_number(point.value)
    return f"{format_number(point.value)} ({format_number(point.low)}–{format_number(point.high)})"


def _claims(figure: Figure, points: Sequence[Point]) -> str:
    rows = [["the paper says", "we see", "holds"]]
    for claim in figure.claims:
        says = f"{claim.says} {values_text(figure, claim)}".strip() + (f" ({claim.place})" if claim.place else "")
        found = verdicts(figure, claim, points)
        if not found:
            checked = bool(claim.order or claim.values or claim.trend)
            rows.append([says, claim.why, "not measured" if checked else "-"])
        for k, verdict in enumerate(found):
            seen = f"{verdict.panel}: {verdict.seen}" if verdict.panel else verdict.seen
            rows.append([says if k == 0 else "", seen, verdict.holds])
        if found and claim.why:
            rows.append(["", f"*Why: {claim.why}*", ""])
    return _table(rows) if len(rows) > 1 else ""


def _table(rows: Sequence[Sequence[str]], numbers: bool = False) -> str:
    return markdown_table(rows, [False, *[numbers] * (len(rows[0]) - 1)])


# -- files


def save_figure(figure: Figure, result: PaperResult, path: str | os.PathLike[str]) -> bool:
    """Draw the figure; return False if nothing of it was measured."""
    panels: dict[str, list[Mark]] = {}
    for point in result.points(figure):
        if point.value:  # a logarithmic axis has no 0
            mark = Mark(point.label, point.label, point.method, point.value, point.low, point.high)
            panels.setdefault(point.panel, []).append(mark)
    if panels:
        title = f"{figure.name}: {figure.title}"
        save_panels(panels, Labels(title, figure.axis_name, UNITS[figure.measure]), path)
    return bool(panels)


def put_into(path: Path, text: str) -> None:
    """Replace the text between the two marks of an existing page."""
    try:
        before, begin, rest = path.read_text(encoding="utf-8").partition(BEGIN)
        _, end, after = rest.partition(END)
        if not begin or not end:
            raise InvalidInput(f"{path} has no place for the figures; add a line '{BEGIN}', and below it '{END}'")
        path.write_text(f"{before}{BEGIN}\n{text.strip()}\n{END}{after}", encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be used as a page: {error}") from None
