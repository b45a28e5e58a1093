# Part of Bastile, under the MIT License. See LICENSE.
"""What masked scores become, in the text of functions that are compiled."""

#: softmax of the scores ``%s`` [batch, queries, keys] where ``%seen``, times the values
#: ``%v`` [batch, keys, 16] of type ``t``: the end of a function's body.
SOFTMAX = """  %never = arith.constant 0xFF800000 : f32
  %hidden = tile.broadcast %never like %s : f32, tensor<?x?x?xf32> -> tensor<?x?x?xf32>
  %x = arith.select %seen, %s, %hidden : tensor<?x?x?xi1>, tensor<?x?x?xf32>
  %m = tile.reduce max %x : tensor<?x?x?xf32> -> tensor<?x?x1xf32>
  %ms = tile.broadcast %m like %s
      : tensor<?x?x1xf32>, tensor<?x?x?xf32> -> tensor<?x?x?xf32>
  %d = arith.subf %x, %ms : tensor<?x?x?xf32>
  %e = math.exp %d : tensor<?x?x?xf32>
  %l = tile.reduce add %e : tensor<?x?x?xf32> -> tensor<?x?x1xf32>
  %ls = tile.broadcast %l like %s
      : tensor<?x?x1xf32>, tensor<?x?x?xf32> -> tensor<?x?x?xf32>
  %p = arith.divf %e, %ls : tensor<?x?x?xf32>
  %o = tile.dot %p, %v contract [1, 0]
      : tensor<?x?x?xf32>, tensor<?x?x16x{t}> -> tensor<?x?x16xf32>
  return %o : tensor<?x?x16xf32>
}}
"""
