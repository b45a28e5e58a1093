# Part of Bastile, under the MIT License. See LICENSE.
"""Medians with their spread."""

import math
import statistics


def summarize(samples) -> dict:
    """The median of ``samples``, the quartiles around it (``low``, ``high``) and
    how many there are (``count``), in the samples' unit."""
    samples = sorted(samples)
    if not samples:
        raise ValueError("there is nothing to summarize")
    if len(samples) < 2:
        low = high = samples[0]
    else:
        low, _, high = statistics.quantiles(samples, n=4, method="inclusive")
    return {
        "median": statistics.median(samples),
        "low": low,
        "high": high,
        "count": len(samples),
    }


def geometric_mean(ratios) -> "float | None":
    """The geometric mean of positive numbers; None of none."""
    logarithms = [math.log(ratio) for ratio in ratios if ratio > 0]
    return math.exp(statistics.fmean(logarithms)) if logarithms else None


def spread_text(measured: dict, digits: int = 1) -> str:
    """``34.4 ±0.2``: the median, and half of what lies between the quartiles."""
    half = (measured["high"] - measured["low"]) / 2
    return f"{measured['median']:.{digits}f} ±{half:.{digits}f}"
