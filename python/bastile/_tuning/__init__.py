"""Choosing schedules by measurement.

The compiler says which schedules are worth timing (ScheduleSpace.h), the runtime
times them (Trial.h); what is here searches, keeps what it finds and looks it up.
No step of it waits in training: without having been asked to tune, a kernel gets
the schedule of a table, or the compiler's own choice.
"""
