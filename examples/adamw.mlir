// A step of AdamW for parameters of bfloat16 with a copy in float32, in one kernel. Each
// result takes the memory of an argument, so that a call overwrites the parameter, its
// copy and the means of the gradient and of the gradient's square. What changes from step
// to step are numbers: 1 - lr * decay, lr / (1 - 0.9^t) and 1 / sqrt(1 - 0.999^t).
func.func @adamw(%parameter: tensor<?x1024xbf16>, %copy: tensor<?x1024xf32>,
                 %gradient: tensor<?x1024xbf16>, %mean: tensor<?x1024xf32>,
                 %square: tensor<?x1024xf32>, %keep: tensor<1xf32>,
                 %rate: tensor<1xf32>, %unbias: tensor<1xf32>)
    -> (tensor<?x1024xbf16> {tile.in_place = 0 : index},
        tensor<?x1024xf32> {tile.in_place = 1 : index},
        tensor<?x1024xf32> {tile.in_place = 3 : index},
        tensor<?x1024xf32> {tile.in_place = 4 : index}) {
  %beta1 = arith.constant 0.1 : f32
  %beta2 = arith.constant 0.001 : f32
  %eps = arith.constant 1.0e-8 : f32
  %g = arith.extf %gradient : tensor<?x1024xbf16> to tensor<?x1024xf32>
  %toward1 = tile.broadcast %beta1 like %g : f32, tensor<?x1024xf32> -> tensor<?x1024xf32>
  %toward2 = tile.broadcast %beta2 like %g : f32, tensor<?x1024xf32> -> tensor<?x1024xf32>
  %least = tile.broadcast %eps like %g : f32, tensor<?x1024xf32> -> tensor<?x1024xf32>
  %kept = tile.broadcast %keep like %g : tensor<1xf32>, tensor<?x1024xf32> -> tensor<?x1024xf32>
  %step = tile.broadcast %rate like %g : tensor<1xf32>, tensor<?x1024xf32> -> tensor<?x1024xf32>
  %unbiased = tile.broadcast %unbias like %g : tensor<1xf32>, tensor<?x1024xf32> -> tensor<?x1024xf32>

  // Both means go a part of the way to what is new.
  %distance1 = arith.subf %g, %mean : tensor<?x1024xf32>
  %change1 = arith.mulf %distance1, %toward1 : tensor<?x1024xf32>
  %mean1 = arith.addf %mean, %change1 : tensor<?x1024xf32>
  %g2 = arith.mulf %g, %g : tensor<?x1024xf32>
  %distance2 = arith.subf %g2, %square : tensor<?x1024xf32>
  %change2 = arith.mulf %distance2, %toward2 : tensor<?x1024xf32>
  %square1 = arith.addf %square, %change2 : tensor<?x1024xf32>

  %root = math.sqrt %square1 : tensor<?x1024xf32>
  %size = arith.mulf %root, %unbiased : tensor<?x1024xf32>
  %divisor = arith.addf %size, %least : tensor<?x1024xf32>
  %direction = arith.divf %mean1, %divisor : tensor<?x1024xf32>
  %moved = arith.mulf %direction, %step : tensor<?x1024xf32>
  %decayed = arith.mulf %copy, %kept : tensor<?x1024xf32>
  %copy1 = arith.subf %decayed, %moved : tensor<?x1024xf32>
  %parameter1 = arith.truncf %copy1 : tensor<?x1024xf32> to tensor<?x1024xbf16>
  return %parameter1, %copy1, %mean1, %square1
      : tensor<?x1024xbf16>, tensor<?x1024xf32>, tensor<?x1024xf32>, tensor<?x1024xf32>
}
