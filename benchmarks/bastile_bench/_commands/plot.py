# Part of Bastile, under the MIT License. See LICENSE.
"""Draw a result file: PNG for each op, and one page of HTML that needs nothing else.

It needs Matplotlib and Jinja2, not a GPU, so results can be drawn elsewhere than
where they were measured.
"""

import importlib.resources
import pathlib

from bastile_bench import _report


def add_arguments(parser) -> None:
    parser.add_argument("result", metavar="RESULT.json")
    parser.add_argument("--out", metavar="DIR", help="folder (that of the result file)")


def run(arguments) -> int:
    """Writes the page and the pictures, and prints where."""
    print(draw(arguments.result, arguments.out))
    return 0


def draw(result, folder=None) -> str:
    """Draws a result file into ``folder``, by default its own; says what it wrote.

    Raises ``ImportError`` without the libraries, and ``ValueError`` for a file that
    cannot be drawn.
    """
    figures = _require_libraries()
    document = _report.read(result)
    source = pathlib.Path(result)
    folder = pathlib.Path(folder or source.parent)
    folder.mkdir(parents=True, exist_ok=True)
    sections = [
        _write_section(figures, folder, source.stem, *section)
        for section in _sections(figures, document)
    ]
    if not sections:
        raise ValueError(f"{source} has nothing that could be drawn")
    page = folder / f"{source.stem}.html"
    page.write_text(_render(document, source, sections))
    return f"{page} and {len(sections)} PNG beside it"


def _require_libraries():
    try:
        import jinja2  # noqa: F401
        from bastile_bench import _figures
    except ImportError as error:
        raise ImportError(
            f"drawing needs Matplotlib and Jinja2; pip install matplotlib jinja2 ({error})"
        ) from error
    return _figures


def _sections(figures, document):
    """(name, title, text, figure) of each part of the page."""
    rows = document["rows"]
    command = document["command"].split()[0]
    drawers = {
        "kernels": _kernel_sections,
        "attention": _attention_sections,
        "host": _host_sections,
        "compile-time": _compile_sections,
    }
    if command not in drawers:
        raise ValueError(
            f"there are no plots of '{command}', only of {', '.join(drawers)}"
        )
    return drawers[command](figures, rows, document["summary"])


def _kernel_sections(figures, rows, summary):
    from bastile_bench._ops import OPS

    if summary:
        yield (
            "summary",
            "On average",
            "Each bar is how many times as long another library takes, as a geometric "
            "mean over the ops and shapes that both have. Right of the dashed line, "
            "Bastile is faster.",
            figures.draw_summary(summary),
        )
    for op in dict.fromkeys(row["op"] for row in rows):
        about = OPS[op].about if op in OPS else ""
        own = [row for row in rows if row["op"] == op]
        yield op, op, about, figures.draw_op(own)


def _attention_sections(figures, rows, summary):
    lengths = [row for row in rows if row["op"] == "length" and row["status"] == "ok"]
    if lengths:
        yield (
            "lengths",
            "Causal attention over lengths",
            "As many sequences as make 16384 tokens, of 32 heads of queries and 8 of keys "
            "with 128 elements.",
            figures.draw_over_lengths(lengths),
        )


def _host_sections(figures, rows, summary):
    yield (
        "host",
        "What a call costs the host",
        "Each bar is the time from one call to the next on tensors so small that the "
        "device is never waited for.",
        figures.draw_times(rows, "host_us", "microseconds (less is better)"),
    )


def _compile_sections(figures, rows, summary):
    yield (
        "compile-time",
        "Compiling",
        "Each bar is the time from the text of an op to PTX, in a process that has "
        "compiled before.",
        figures.draw_times(rows, "compile_ms", "milliseconds (less is better)"),
    )


def _write_section(figures, folder, stem, name, title, text, figure):
    (folder / f"{stem}-{name}.png").write_bytes(figures.to_png(figure))
    svg = figures.to_svg(figure, name)
    figures.close(figure)
    return {"title": title, "text": text, "svg": svg, "name": name}


def _render(document, source, sections):
    import jinja2

    template = importlib.resources.files("bastile_bench").joinpath("_page.html")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    flat = [_report.flatten(row) for row in document["rows"]]
    return environment.from_string(template.read_text()).render(
        document=document,
        machine=_report.describe_environment(document["environment"]),
        source=source.name,
        sections=sections,
        rows=flat,
        columns=_columns(flat),
        is_kernels=document["command"].startswith("kernels"),
        number=_number,
    )


def _columns(rows):
    """Titles of the table; what is long or the same for all is left to the file."""
    left_out = {"kernels", "sets", "rows_checked", "bytes", "status", "error"}
    titles = dict.fromkeys(title for row in rows for title in row)
    return [
        title
        for title in titles
        if title not in left_out and not title.endswith(("_low", "_high"))
    ]


def _number(value):
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
