// options: --target=host --grad --schedule=threads=2048,vector=8,columns=8192
func.func @f(%x: tensor<?x8192xf32>, %y: tensor<?x8192xf32>) -> tensor<?x8192xf32> {
  %0 = math.powf %x, %y : tensor<?x8192xf32>
  return %0 : tensor<?x8192xf32>
}
