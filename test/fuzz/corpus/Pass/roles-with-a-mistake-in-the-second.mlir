// options: --pass-pipeline=builtin.module(differentiate{gradients=all})
tile.program @cluster(%n: index, %x: memref<?xi32> {tile.dimensions = ["n"]})
    attributes {dimensions = ["n"], programs = {n = 2 : i64},
                schedule = #tile.launch<threads = 256, cluster = 2>} {
    tile.arrive at %barriers[%c0] cluster : !tile.barriers<1>
  %barriers = tile.make_barriers arrivals 2 : !tile.barriers<1>
  tile.synchronize cluster
  tile.roles warps [4, 4] threads [1, 128] {
  %c0 = arith.constant 1000 : index
  }, {
    tile.arrive at %barriers[%barriers] cluster : !tile.barriers<1>
  }
  tile.return
}