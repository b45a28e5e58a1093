//===- NumberStages.cpp - Stages for numbers of rows ----------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/roles/NumberStages.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace bastile;

NumberStages::NumberStages(ProgramFrame &frame, ArrayRef<unsigned> operands,
                           int64_t stages)
    : frame(frame), builder(frame.builder) {
  auto space = gpu::AddressSpaceAttr::get(builder.getContext(),
                                          gpu::AddressSpace::Workgroup);
  for (unsigned operand : operands)
    copied.push_back(
        {operand,
         tile::MakeNumbersOp::create(
             builder, MemRefType::get({stages, frame.extents.streamed},
                                      builder.getF32Type(),
                                      MemRefLayoutAttrInterface(), space))});
}

void NumberStages::copy(Value slot) const {
  for (const Copied &own : copied)
    tile::CopyNumbersOp::create(builder, frame.emitter.getMemory(own.operand),
                                frame.emitter.getIndices(own.operand),
                                own.numbers, slot);
}

Value NumberStages::take(unsigned operand, Value slot) const {
  for (const Copied &own : copied)
    if (own.operand == operand)
      return tile::TakeNumbersOp::create(
          builder,
          frame.emitter.getTileType(frame.operands.getAll()[operand].type,
                                    /*ofFactor=*/true),
          own.numbers, slot);
  return Value();
}
