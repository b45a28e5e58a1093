// options: --pass-pipeline=builtin.module(expand-math)
%0 = arith.negf %0 : tensor<?x8xf32>
