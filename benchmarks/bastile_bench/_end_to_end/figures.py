# Part of Bastile, under the MIT License. See LICENSE.
"""Plots of whole models, as PNG."""

import pathlib

from bastile_bench._end_to_end import jobs

# One colour a provider, in every plot; told apart without colour vision as well.
_COLOURS = {
    "hf": "#999999",
    "liger": "#e69f00",
    "liger+compile": "#f0e442",
    "bastile": "#0072b2",
    "compile": "#cc79a7",
    "bastile+compile": "#009e73",
    "bastile+linear": "#56b4e9",
    "bastile+linear+compile": "#d55e00",
    "bastile+adamw": "#000000",
    "bastile+adamw+compile": "#666666",
}


def _pyplot():
    import matplotlib

    # Files alone are drawn, also where there is no display.
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def _save(figure, folder, name):
    path = pathlib.Path(folder) / name
    figure.savefig(path, dpi=150, bbox_inches="tight")
    _pyplot().close(figure)
    print(f"wrote {path}")


def draw_training(rows: list, folder) -> None:
    """Tokens/s and peak memory of all models; the losses of each."""
    rows = [row for row in rows if row["status"] == jobs.MEASURED]
    if not rows:
        return
    pyplot = _pyplot()
    figure, (speed, memory) = pyplot.subplots(1, 2, figsize=(11, 4))
    _group_bars(speed, rows, lambda row: row["tokens_per_second"]["median"])
    speed.set_ylabel("tokens/s")
    _group_bars(memory, rows, lambda row: row["peak_bytes"] / 1e9)
    memory.set_ylabel("peak memory, GB")
    speed.legend(fontsize="small")
    _save(figure, folder, "train.png")
    for model in dict.fromkeys(row["model"] for row in rows):
        _draw_losses([row for row in rows if row["model"] == model], folder)


def _group_bars(axes, rows, value):
    """Bars of the providers side by side, a group for each model."""
    models = list(dict.fromkeys(row["model"] for row in rows))
    providers = list(dict.fromkeys(row["provider"] for row in rows))
    width = 0.8 / len(providers)
    for place, provider in enumerate(providers):
        own = {row["model"]: value(row) for row in rows if row["provider"] == provider}
        axes.bar(
            [models.index(m) + (place - (len(providers) - 1) / 2) * width for m in own],
            list(own.values()),
            width,
            label=provider,
            color=_COLOURS.get(provider),
        )
    shapes = {row["model"]: f"{row['batch']}x{row['seq']}" for row in rows}
    axes.set_xticks(range(len(models)), [f"{m}\n{shapes[m]}" for m in models])


def _draw_losses(rows, folder):
    figure, axes = _pyplot().subplots(figsize=(6, 4))
    for row in rows:
        steps = range(1, len(row["losses"]) + 1)
        colour = _COLOURS.get(row["provider"])
        axes.plot(steps, row["losses"], label=row["provider"], color=colour)
        if "other_losses" in row:
            axes.plot(
                steps,
                row["other_losses"],
                "--",
                label=f"{row['provider']}, other data",
                color=colour,
            )
    axes.set_xlabel("step")
    axes.set_ylabel("loss")
    axes.set_title(rows[0]["title"])
    axes.legend(fontsize="small")
    _save(figure, folder, f"losses-{rows[0]['model']}.png")


def draw_generation(rows: list, folder) -> None:
    """Milliseconds a token over the length of the prompt, for each model."""
    rows = [row for row in rows if row["status"] == jobs.MEASURED]
    for model in dict.fromkeys(row["model"] for row in rows):
        own = [row for row in rows if row["model"] == model]
        batches = sorted({row["batch"] for row in own})
        figure, all_axes = _pyplot().subplots(
            1, len(batches), figsize=(5 * len(batches), 4), squeeze=False, sharey=True
        )
        for axes, batch in zip(all_axes[0], batches):
            _draw_latencies(axes, [row for row in own if row["batch"] == batch])
            axes.set_title(f"{own[0]['title']}, batch {batch}")
        all_axes[0][0].set_ylabel("a token, ms")
        all_axes[0][0].legend(fontsize="small")
        _save(figure, folder, f"generate-{model}.png")


def _draw_latencies(axes, rows):
    prompts = sorted({row["prompt"] for row in rows})
    providers = list(dict.fromkeys(row["provider"] for row in rows))
    width = 0.8 / len(providers)
    for place, provider in enumerate(providers):
        own = [row for row in rows if row["provider"] == provider]
        axes.bar(
            [
                prompts.index(row["prompt"])
                + (place - (len(providers) - 1) / 2) * width
                for row in own
            ],
            [row["token_ms"]["median"] for row in own],
            width,
            label=provider,
            color=_COLOURS.get(provider),
        )
    axes.set_xticks(range(len(prompts)), prompts)
    axes.set_xlabel("prompt, tokens")


def draw_profiles(rows: list, categories: list, folder) -> None:
    """A stacked bar for each provider: where a step's milliseconds go."""
    rows = [row for row in rows if row["status"] == jobs.MEASURED]
    pyplot = _pyplot()
    palette = pyplot.get_cmap("tab20")
    for model in dict.fromkeys(row["model"] for row in rows):
        own = [row for row in rows if row["model"] == model]
        figure, axes = pyplot.subplots(figsize=(2.5 + 1.3 * len(own), 5))
        bottoms = [0.0] * len(own)
        for number, category in enumerate(categories):
            heights = [row["categories"].get(category, 0.0) for row in own]
            if not any(heights):
                continue
            axes.bar(
                range(len(own)),
                heights,
                0.6,
                bottoms,
                label=category,
                color="#dddddd" if category == "idle" else palette(number),
            )
            bottoms = [a + b for a, b in zip(bottoms, heights)]
        axes.set_xticks(range(len(own)), [row["provider"] for row in own])
        axes.set_ylabel("a step, ms")
        axes.set_title(f"{own[0]['title']}, {own[0]['batch']}x{own[0]['seq']}")
        handles, labels = axes.get_legend_handles_labels()
        # From the top of the bars down.
        axes.legend(
            handles[::-1], labels[::-1], loc="center left", bbox_to_anchor=(1, 0.5)
        )
        _save(figure, folder, f"profile-{model}.png")
