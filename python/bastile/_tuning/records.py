# Part of Bastile, under the MIT License. See LICENSE.
"""Lines of logs and tables: which values out of JSON are one."""

#: Seconds that no measurement takes.
_MOST_SECONDS = 1e6


def is_record(value) -> bool:
    """Whether a value out of JSON is a line of a log. Kinds of records that a
    later version may add are lines as well."""
    if not isinstance(value, dict):
        return False
    kind = value.get("kind")
    if kind == "best":
        return is_entry(value)
    if kind == "time":
        return _is_measurement(value)
    return kind is None or isinstance(kind, str)


def is_entry(value) -> bool:
    """Whether a value out of JSON is a line of a table: what was found for a
    key."""
    return (
        isinstance(value, dict)
        and all(_is_text(value.get(name)) for name in ("key", "name", "schedule"))
        and _is_count(value.get("rows"))
        and isinstance(value.get("spec", {}), dict)
    )


def _is_measurement(value):
    return (
        _is_text(value.get("function"))
        and _is_text(value.get("code"))
        and _is_time(value.get("seconds", 1.0))
    )


def _is_text(value):
    # JSON can write halves of characters, which the compiler cannot be given.
    return isinstance(value, str) and not any(
        "\ud800" <= character <= "\udfff" for character in value
    )


def _is_count(value):
    # Python takes True for an integer.
    return type(value) is int and value >= 0


def _is_time(value):
    return type(value) in (int, float) and 0 < value < _MOST_SECONDS
