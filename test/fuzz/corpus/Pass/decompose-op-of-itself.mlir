// options: --pass-pipeline=builtin.module(decompose)
%0 = tile.reduce add %0 : tensor<?x1xf32> -> tensor<?x1xf32>
