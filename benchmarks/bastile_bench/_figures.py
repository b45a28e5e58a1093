# Part of Bastile, under the MIT License. See LICENSE.
"""Figures of results, drawn with Matplotlib."""

import io

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import LogFormatter  # noqa: E402
from bastile_bench._providers import PROVIDERS  # noqa: E402
from bastile_bench._report import shape_text  # noqa: E402

_STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "svg.fonttype": "none",  # text stays text: smaller, and found by a search
}
_DIRECTIONS = {
    "inference": "forward, without gradients",
    "forward": "forward",
    "backward": "backward",
    "both": "forward and backward together",
}
_COPY_COLOR = "#222222"


def _directions(rows):
    return [x for x in _DIRECTIONS if any(row["direction"] == x for row in rows)]


def draw_op(rows) -> plt.Figure:
    """The rows of one op: on the left, the speed on the device; on the right, the
    time of a call; one below the other, forward and backward."""
    directions = _directions(rows)
    shapes = list(dict.fromkeys(tuple(row["shape"]) for row in rows))
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots(
            len(directions),
            2,
            figsize=(11, 0.6 + 2.7 * len(directions)),
            squeeze=False,
            layout="constrained",
        )
        for (speed, wall), direction in zip(axes, directions):
            chosen = [row for row in rows if row["direction"] == direction]
            _draw_speed(speed, chosen, shapes)
            _draw_wall(wall, chosen, shapes)
            speed.set_title(_DIRECTIONS[direction], loc="left", fontweight="bold")
        _add_legend(figure, axes)
    return figure


def draw_over_lengths(rows) -> plt.Figure:
    """Operations in a second over the length of sequences, a line for each kernel; one
    below the other, forward and backward."""
    directions = _directions(rows)
    kernels = list(dict.fromkeys(row["kernel"] for row in rows))
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots(
            len(directions),
            1,
            figsize=(8, 0.6 + 3 * len(directions)),
            squeeze=False,
            layout="constrained",
        )
        for axis, direction in zip(axes[:, 0], directions):
            for kernel in kernels:
                points = sorted(
                    (row["shape"][1], row["tflops"])
                    for row in _done(rows)
                    if (row["direction"], row["kernel"]) == (direction, kernel)
                )
                is_own = kernel == PROVIDERS["bastile"].title
                color = PROVIDERS["bastile"].color if is_own else None
                axis.plot(*zip(*points), marker="o", label=kernel, color=color)
            axis.set_xscale("log", base=2)
            axis.set_ylim(bottom=0)
            axis.set_ylabel("TFLOP/s\n(more is better)")
            axis.set_xlabel("length of a sequence")
            axis.set_title(_DIRECTIONS[direction], loc="left", fontweight="bold")
        axes[0, 0].legend(frameon=False)
    return figure


def _draw_speed(axis, rows, shapes):
    _draw_bars(axis, rows, shapes, lambda row: row.get("gb_per_s"))
    for index, shape in enumerate(shapes):
        row = next((r for r in _done(rows) if tuple(r["shape"]) == shape), None)
        if row:
            copy = row["bytes"] / row["copy_us"]["median"] / 1e3
            axis.hlines(
                copy, index - 0.46, index + 0.46, _COPY_COLOR, "dashed", label="a copy"
            )
    axis.set_ylabel("GB/s on the device\n(more is better)")
    axis.set_ylim(bottom=0)


def _draw_wall(axis, rows, shapes):
    def median(row):
        time = row.get("wall_us", {"median": 0})["median"]
        return time if time > 0 else None

    _draw_bars(axis, rows, shapes, median)
    axis.set_yscale("log")
    axis.yaxis.set_major_formatter(LogFormatter())
    axis.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1.2, 0.4)))
    axis.set_ylabel("microseconds of a call\n(less is better)")


def _done(rows):
    return [row for row in rows if row["status"] == "ok"]


def _draw_bars(axis, rows, shapes, value):
    """Bars in groups by shape, one for each library; a cross where it failed."""
    names = [x for x in PROVIDERS if any(row["provider"] == x for row in rows)]
    width = 0.84 / max(1, len(names))
    for row in rows:
        group = shapes.index(tuple(row["shape"]))
        place = group - 0.42 + width * (names.index(row["provider"]) + 0.5)
        provider = PROVIDERS[row["provider"]]
        height = value(row)
        if height:
            axis.bar(place, height, width, color=provider.color, label=provider.title)
        elif row["status"] == "failed":
            bottom = axis.get_xaxis_transform()
            axis.text(
                place, 0.01, "x", color=provider.color, ha="center", transform=bottom
            )
    axis.set_xticks(
        range(len(shapes)),
        [shape_text(shape) for shape in shapes],
        rotation=20 if len(shapes) > 4 else 0,
        ha="right" if len(shapes) > 4 else "center",
    )
    axis.set_xlim(-0.6, len(shapes) - 0.4)


def _add_legend(figure, axes):
    found = {}
    for axis in axes.flat:
        handles, labels = axis.get_legend_handles_labels()
        found.update(zip(labels, handles))
    order = ["a copy", *(provider.title for provider in PROVIDERS.values())]
    labels = [label for label in order if label in found]
    figure.legend(
        [found[label] for label in labels],
        labels,
        loc="outside upper left",
        ncols=len(labels),
        frameon=False,
    )


def draw_summary(summary) -> plt.Figure:
    """How many times faster Bastile is than each library, on average."""
    groups = list(dict.fromkeys(row["group"] for row in summary))
    with plt.rc_context({**_STYLE, "axes.grid.axis": "x"}):
        figure, axes = plt.subplots(
            1, 2, figsize=(10, 0.9 + 0.75 * len(groups)), layout="constrained"
        )
        for axis, key, title in zip(
            axes, ("device_speedup", "wall_speedup"), ("on the device", "of a call")
        ):
            _draw_factors(axis, summary, groups, key)
            axis.set_xlabel(f"their time / Bastile's, {title}")
        axes[1].set_yticklabels([])
        _add_legend(figure, axes.reshape(1, -1))
    return figure


def _draw_factors(axis, summary, groups, key):
    names = [x for x in PROVIDERS if any(row["provider"] == x for row in summary)]
    width = 0.84 / max(1, len(names))
    for row in summary:
        if not row[key]:
            continue
        provider = PROVIDERS[row["provider"]]
        place = groups.index(row["group"]) - 0.42
        place += width * (names.index(row["provider"]) + 0.5)
        axis.barh(place, row[key], width, color=provider.color, label=provider.title)
        axis.text(row[key], place, f" {row[key]:.2f}", va="center", fontsize=7)
    axis.axvline(1, color=_COPY_COLOR, linestyle="dashed", label="as fast as Bastile")
    axis.set_yticks(range(len(groups)), groups)
    axis.invert_yaxis()


def draw_times(rows, key: str, label: str) -> plt.Figure:
    """One time of each row as a bar, by library and direction."""
    rows = [row for row in rows if row.get(key)]
    names = [f"{row['op']}, {row['direction']}" for row in rows]
    kinds = list(dict.fromkeys(names))
    with plt.rc_context({**_STYLE, "axes.grid.axis": "x"}):
        figure, axis = plt.subplots(
            figsize=(9, 1.2 + 0.32 * len(kinds)), layout="constrained"
        )
        providers = [x for x in PROVIDERS if any(r["provider"] == x for r in rows)]
        width = 0.84 / max(1, len(providers))
        for row, name in zip(rows, names):
            provider = PROVIDERS[row["provider"]]
            place = kinds.index(name) - 0.42
            place += width * (providers.index(row["provider"]) + 0.5)
            axis.barh(
                place,
                row[key]["median"],
                width,
                color=provider.color,
                label=provider.title,
            )
        axis.set_yticks(range(len(kinds)), kinds)
        axis.set_ylim(len(kinds) - 0.4, -0.6)
        axis.set_xlabel(label)
        _add_legend(figure, _Single(axis))
    return figure


class _Single:
    """One axis where several are expected."""

    def __init__(self, axis):
        self.flat = [axis]


def to_png(figure) -> bytes:
    return _save(figure, "png", dpi=130)


def to_svg(figure, name: str) -> str:
    """SVG to put into a page; ``name`` keeps its identifiers apart from others'."""
    with plt.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        text = _save(figure, "svg", metadata={"Date": None}).decode()
    return text[text.index("<svg") :]


def close(figure) -> None:
    plt.close(figure)


def _save(figure, kind, **options):
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, **options)
    return buffer.getvalue()
