// options: --pass-pipeline=builtin.module(lower-to-host)
%0 = arith.bitcast %0 : tensor<?x8xf32> to tensor<?x8xf32>
