// RUN: tile-opt %s --distribute -verify-diagnostics -split-input-file

// expected-error @below {{has no schedule; run the 'schedule' pass first}}
tile.kernel @unscheduled(%rows: index) attributes {leading = 1 : i64} {
  tile.return
}

// -----

// expected-error @below {{schedule #tile.schedule<threads = 128, persistent = 4, stages = 2> leaves fields to be chosen; run the 'schedule' pass first}}
tile.kernel @incomplete(%rows: index)
    attributes {leading = 1 : i64, schedule = #tile.schedule<threads = 128, persistent = 4, stages = 2>} {
  tile.return
}
