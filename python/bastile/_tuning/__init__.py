# Part of Bastile, under the MIT License. See LICENSE.
"""Schedules chosen by measurement.

The compiler enumerates the schedules that are worth timing (ScheduleSpace.h), and the
runtime times them (Trial.h); this room searches, keeps what it finds, and looks it up
for kernels that are loaded. Requests enter, schedules leave. No step of it waits in
training: without having been asked to tune, a kernel gets the schedule of a table, or
the compiler's own choice. Which schedules are valid is the compiler's to say.
"""
