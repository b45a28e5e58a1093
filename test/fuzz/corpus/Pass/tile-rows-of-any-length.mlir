// options: --pass-pipeline=builtin.module(tile{target=host},overlap-launches{target=host})
tile.kernel @first(%x: tensor<?x?xf32>) -> tensor<?x?xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 64, vector = 4, columns = 256, persistent = 1>} {
  %0 = arith.addf %x, %x : tensor<?x?xf32>
  tile.return %0 : tensor<?x?xf32>
}
tile.kernel @middle(%x: tensor<?x?xf32>) -> tensor<?x?xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 64, vector = 4, columns = 256, persistent = 1>} {
  %0 = arith.addf %x, %x : tensor<?x?xf32>
  tile.return %0 : tensor<?x?xf32>
}
tile.kernel @last(%x: tensor<?x?xf32>) -> tensor<?x?xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 64, vector = 4, columns = 256, persistent = 1>} {
  %0 = arith.addf %x, %x : tensor<?x?xf32>
  tile.return %0 : tensor<?x?xf32>
}
func.func @f(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %0 = tile.launch [@first](%x) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %1 = tile.launch [@middle](%0) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %2 = tile.launch [@last](%1) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  return %2 : tensor<?x?xf32>
}
