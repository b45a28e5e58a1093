//===- SharedSums.cpp - Sums that programs add up in memory ---------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/crossed/SharedSums.h"

#include "dialect/OperandMemory.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/products/Boxes.h"

using namespace mlir;
using namespace bastile;

/// Whether a dimension of sums is one along which programs differ.
static bool isCounted(Attribute dimension) {
  auto name = dyn_cast<StringAttr>(dimension);
  return name && name.getValue() != "n";
}

static bool isStreamed(Attribute dimension) {
  return cast<StringAttr>(dimension).getValue() == "k";
}

SharedSums::SharedSums(ProgramFrame &frame, BlockArgument ofOther,
                       DictionaryAttr marks)
    : frame(frame), builder(frame.builder),
      dimensions(marks.getAs<ArrayAttr>(tile::ProgramOp::kDimensionsAttrName)) {
  NamedAttrList ofSums, ofCounters, parts;
  ofSums.set(tile::ProgramOp::kDimensionsAttrName, dimensions);
  sums = append(getMapType(cast<MemRefType>(ofOther.getType()),
                           {frame.extents.streamed, AddedSums::kPanelColumns},
                           /*matrixRows=*/0),
                ofSums);
  for (Attribute dimension : dimensions)
    if (isCounted(dimension))
      parts.set(cast<StringAttr>(dimension),
                builder.getI64IntegerAttr(
                    isStreamed(dimension) ? frame.extents.streamed : 1));
  ofCounters.set(tile::ProgramOp::kCountersAttrName,
                 parts.getDictionary(builder.getContext()));
  counters =
      append(MemRefType::get({ShapedType::kDynamic}, builder.getI32Type()),
             ofCounters);
}

Value SharedSums::append(Type type, const NamedAttrList &marks) {
  tile::ProgramOp program = frame.program;
  const unsigned index = program.getNumArguments();
  (void)program.insertArgument(
      index, type, marks.getDictionary(builder.getContext()), builder.getLoc());
  return program.getArgument(index);
}

SmallVector<Value> SharedSums::getIndices() {
  SmallVector<Value> indices;
  for (Attribute dimension : dimensions) {
    if (!isCounted(dimension))
      indices.push_back(frame.constant(0));
    else if (isStreamed(dimension))
      indices.push_back(frame.emitter.stream);
    else
      indices.push_back(frame.emitter.batch.lookup(dimension));
  }
  return indices;
}

Value SharedSums::getCounter() {
  Value counter = frame.constant(0);
  for (Attribute dimension : dimensions) {
    if (!isCounted(dimension))
      continue;
    Value size = frame.emitter.getSize(cast<StringAttr>(dimension).getValue());
    Value place;
    if (isStreamed(dimension)) {
      Value length = frame.constant(frame.extents.streamed);
      size = arith::CeilDivUIOp::create(builder, size, length);
      place = arith::DivUIOp::create(builder, frame.emitter.stream, length);
    } else {
      place = frame.emitter.batch.lookup(dimension);
    }
    counter = arith::AddIOp::create(
        builder, arith::MulIOp::create(builder, counter, size), place);
  }
  return counter;
}

Value SharedSums::emitLastTile(StreamPipeline &pipeline) {
  Value lastRow = arith::MaxSIOp::create(builder, pipeline.emitLastRow(),
                                         frame.constant(0));
  return arith::DivUIOp::create(builder, lastRow,
                                frame.constant(frame.extents.rows));
}
