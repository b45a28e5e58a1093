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
    : frame(frame), builder(frame.builder), ring(frame.builder, stages) {
  auto space = gpu::AddressSpaceAttr::get(builder.getContext(),
                                          gpu::AddressSpace::Workgroup);
  for (unsigned operand : operands)
    copied.push_back(
        {operand,
         tile::MakeNumbersOp::create(
             builder, MemRefType::get({stages, frame.extents.streamed},
                                      builder.getF32Type(),
                                      MemRefLayoutAttrInterface(), space))});
  if (isEmpty())
    return;
  full = ring.makeBarriers(1);
  empty = ring.makeBarriers(frame.schedule.getDotWarps());
}

void NumberStages::arrive(Value barriers, Value number) {
  tile::ArriveOp::create(builder, barriers, ring.getSlot(number),
                         /*cluster=*/false, /*warps=*/true);
}

void NumberStages::copy(Value number) {
  if (isEmpty())
    return;
  Value into = ring.getSlot(number);
  // In the first round this returns at once.
  tile::AwaitOp::create(builder, TypeRange(), empty, into,
                        ring.getParity(number, /*ahead=*/1), ValueRange());
  for (const Copied &own : copied)
    tile::CopyNumbersOp::create(builder, frame.emitter.getMemory(own.operand),
                                frame.emitter.getIndices(own.operand),
                                own.numbers, into);
  arrive(full, number);
}

void NumberStages::await(Value number) {
  if (isEmpty())
    return;
  slot = ring.getSlot(number);
  tile::AwaitOp::create(builder, TypeRange(), full, slot,
                        ring.getParity(number, /*ahead=*/0), ValueRange());
}

Value NumberStages::take(unsigned operand) {
  for (const Copied &own : copied)
    if (own.operand == operand)
      return tile::TakeNumbersOp::create(
          builder,
          frame.emitter.getTileType(frame.operands.getAll()[operand].type,
                                    /*ofFactor=*/true),
          own.numbers, slot);
  return Value();
}

void NumberStages::release(Value number) {
  if (!isEmpty())
    arrive(empty, number);
}
