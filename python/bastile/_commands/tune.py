# Part of Bastile, under the MIT License. See LICENSE.
"""`bastile tune`: times schedules and keeps the fastest."""

from bastile._tuning.command import add_command as register

__all__ = ["register"]
