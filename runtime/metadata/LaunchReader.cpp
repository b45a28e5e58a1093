//===- LaunchReader.cpp - Launches from JSON ------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/metadata/LaunchReader.h"
#include "runtime/Text.h"
#include "runtime/metadata/DimensionReader.h"
#include "runtime/metadata/ExpressionReader.h"
#include "runtime/metadata/OperandName.h"

#include <algorithm>
#include <limits>

using namespace bastile::runtime;

Operand bastile::runtime::readOperand(const JsonCursor &cursor,
                                      const Function &function) {
  Operand result;
  if (auto input = cursor.find("input")) {
    result.kind = Operand::Kind::Input;
    result.index = input->asIndex(function.inputs.size(), "inputs");
  } else if (auto output = cursor.find("output")) {
    result.kind = Operand::Kind::Output;
    result.index = output->asIndex(function.outputs.size(), "outputs");
  } else if (auto piece = cursor.find("piece")) {
    result.kind = Operand::Kind::Piece;
    result.index = piece->asIndex(function.pieces.size(), "pieces");
  } else {
    result.kind = Operand::Kind::Temporary;
    result.index =
        cursor["temporary"].asIndex(function.temporaries.size(), "temporaries");
  }
  return result;
}

/// Reads what an operand of a launch over rows has to do with these.
static void readRows(const JsonCursor &cursor, const Function &function,
                     unsigned leading, size_t operandCount, Operand &result) {
  const size_t rank = function.rank(result);
  // Kernels are compiled for the length of their rows.
  if (result.kind == Operand::Kind::Input && rank != 0 &&
      !function.inputs[result.index].shape.back())
    cursor.fail(concat("the last dimension of ", describe(function, result),
                       " must be static in a launch over rows"));
  if (auto rows = cursor.find("rows"))
    result.rows = rows->asBool();
  if (auto space = cursor.find("space")) {
    // With more row spaces than operands, some row space would have no
    // operands.
    result.space = space->asIndex(operandCount, "operands");
    if (result.space != 0 && !result.rows)
      space->fail("an operand without rows belongs to no row space");
  }
  if (auto band = cursor.find("band")) {
    result.band = band->asInteger(/*least=*/1);
    if (result.rows || rank != 2 || leading != 1)
      band->fail("bands are of rows with one leading dimension, and an operand "
                 "with one row for each band cannot have 'rows' as well");
  }
  if (result.rows && rank != leading + 1)
    cursor.fail(concat(describe(function, result), " has rank ", rank,
                       ", but the rows of the launch have ", leading,
                       " leading dimensions"));
}

static Argument readRowArgument(const JsonCursor &cursor, const Launch &launch,
                                unsigned leading) {
  Argument result;
  if (auto size = cursor.find("size")) {
    result.kind = Argument::Kind::Size;
    result.dimension = size->asIndex(leading, "leading dimensions");
    if (auto space = cursor.find("space"))
      result.space = space->asIndex(launch.spaces, "spaces");
    return result;
  }
  if (auto size = cursor.find("unmerged_size")) {
    result.kind = Argument::Kind::UnmergedSize;
    result.dimension = size->asIndex(launch.leading, "leading dimensions");
    return result;
  }
  if (auto pointer = cursor.find("pointer")) {
    result.kind = Argument::Kind::Pointer;
    result.operand = pointer->asIndex(launch.operands.size(), "operands");
    return result;
  }
  if (!cursor.has("stride"))
    cursor.fail("expected 'size', 'unmerged_size', 'pointer' or 'stride'");
  result.kind = Argument::Kind::Stride;
  result.operand = cursor["stride"].asIndex(launch.operands.size(), "operands");
  result.dimension = cursor["dimension"].asIndex(leading, "leading dimensions");
  if (!launch.operands[result.operand].rows)
    cursor.fail(concat("operand ", result.operand,
                       " is shared by all rows and has no leading stride"));
  return result;
}

/// A row operand has one dimension more than the leading ones.
static unsigned readLeading(const JsonCursor &cursor) {
  int64_t leading = cursor.asInteger();
  if (leading >= maxRank)
    cursor.fail(concat("expected at most ", maxRank - 1, ", got ", leading));
  return static_cast<unsigned>(leading);
}

/// Reads a power of two for each operand of `launch`.
static std::vector<int64_t> readPowers(const JsonCursor &cursor,
                                       const Launch &launch) {
  if (cursor.size() != launch.operands.size())
    cursor.fail(concat("expected one number for each of the ",
                       launch.operands.size(), " operands, got ",
                       cursor.size()));
  std::vector<int64_t> result;
  for (size_t i = 0; i != cursor.size(); ++i) {
    int64_t power = cursor[i].asInteger(/*least=*/1);
    if ((power & (power - 1)) != 0)
      cursor[i].fail(concat(power, " is not a power of two"));
    result.push_back(power);
  }
  return result;
}

static std::vector<int64_t> readPhases(const JsonCursor &cursor,
                                       const Launch &launch) {
  std::vector<int64_t> result = readPowers(cursor, launch);
  for (size_t i = 0; i != result.size(); ++i)
    if (result[i] != 1 && !launch.operands[i].rows)
      cursor[i].fail(
          concat("operand ", i, " is shared by all rows and has no phase"));
  return result;
}

/// Reads a number that the driver takes as an int.
static int64_t readInt(const JsonCursor &cursor, int64_t least) {
  const int64_t value = cursor.asInteger(least);
  if (value > std::numeric_limits<int>::max())
    cursor.fail(concat("expected at most ", std::numeric_limits<int>::max(),
                       ", got ", value));
  return value;
}

static Feature readFeature(const JsonCursor &cursor) {
  const std::string spelling = cursor.asString();
  if (spelling != "wgmma")
    cursor.fail(
        concat("no feature is called '", spelling, "'; expected 'wgmma'"));
  return Feature::Wgmma;
}

static Variant readVariant(const JsonCursor &cursor, const Function &function,
                           const Launch &launch) {
  Variant result;
  result.entry = cursor["entry"].asString();
  if (launch.hasDimensions())
    refuseRows(cursor, {"leading", "phase"});
  else
    result.leading = readLeading(cursor["leading"]);

  result.alignment = readPowers(cursor["alignment"], launch);
  if (auto phase = cursor.find("phase"))
    result.phase = readPhases(*phase, launch);
  else
    result.phase.assign(launch.operands.size(), 1);

  JsonCursor arguments = cursor["arguments"];
  for (size_t i = 0; i != arguments.size(); ++i)
    result.arguments.push_back(
        launch.hasDimensions()
            ? readDimensionArgument(arguments[i], function, launch, result)
            : readRowArgument(arguments[i], launch, result.leading));
  if (launch.hasDimensions())
    result.packed = findPacked(launch, result);
  if (auto needs = cursor.find("requires"))
    for (size_t i = 0; i != needs->size(); ++i)
      result.needs.push_back(readFeature((*needs)[i]));
  if (!result.tensorMaps.empty())
    result.needs.push_back(Feature::TensorMaps);
  if (auto least = cursor.find("least")) {
    if (!launch.hasDimensions())
      least->fail("the launch is over rows and not over named dimensions");
    for (size_t i = 0; i != least->size(); ++i)
      result.least.emplace_back(readDimension((*least)[i]["dimension"], launch),
                                (*least)[i]["size"].asInteger());
  }

  result.grid = readExpression(cursor["grid"], function, &launch);
  result.block = readInt(cursor["block"], /*least=*/1);
  if (auto cluster = cursor.find("cluster"))
    result.cluster = readInt(*cluster, /*least=*/1);
  if (auto bytes = cursor.find("shared_memory"))
    result.sharedMemory = readInt(*bytes, /*least=*/0);
  if (auto registers = cursor.find("max_registers"))
    result.maxRegisters = readInt(*registers, /*least=*/0);
  if (auto bytes = cursor.find("static_shared_memory"))
    result.staticSharedMemory = readInt(*bytes, /*least=*/0);
  return result;
}

/// Checks that the sizes of `space` are those of some operand.
static void checkSpace(const JsonCursor &cursor, const Launch &launch,
                       unsigned space) {
  if (std::any_of(launch.operands.begin(), launch.operands.end(),
                  [&](const Operand &operand) {
                    return operand.rows && operand.space == space;
                  }))
    return;
  if (launch.spaces != 1)
    cursor["operands"].fail(concat("none has the rows of space ", space));
  if (launch.leading != 0)
    cursor["leading"].fail("no operand has rows to take the sizes from");
}

/// Reads the leading dimensions over which rows are combined.
static std::vector<unsigned> readCombines(const JsonCursor &cursor,
                                          unsigned leading) {
  std::vector<unsigned> result;
  for (size_t i = 0; i != cursor.size(); ++i) {
    unsigned dimension = cursor[i].asIndex(leading, "leading dimensions");
    if (!result.empty() && dimension <= result.back())
      cursor[i].fail(concat("dimension ", dimension, " follows dimension ",
                            result.back(), ", expected ascending order"));
    result.push_back(dimension);
  }
  return result;
}

/// Reads what a launch over rows says of these.
static void readRowSpaces(const JsonCursor &cursor, const Function &function,
                          Launch &result) {
  result.leading = readLeading(cursor["leading"]);
  if (auto combines = cursor.find("combines"))
    result.combines = readCombines(*combines, result.leading);
  if (auto anyOrder = cursor.find("any_order"))
    result.anyOrder = anyOrder->asBool();
  if (result.anyOrder && !result.combines.empty())
    cursor["any_order"].fail("the kernel combines rows, in their order");
  JsonCursor operands = cursor["operands"];
  for (size_t i = 0; i != operands.size(); ++i)
    readRows(operands[i], function, result.leading, operands.size(),
             result.operands[i]);
  for (const Operand &operand : result.operands)
    result.spaces = std::max(result.spaces, operand.space + 1);
  for (unsigned space = 0; space != result.spaces; ++space)
    checkSpace(cursor, result, space);
}

Launch bastile::runtime::readLaunch(const JsonCursor &cursor,
                                    const Function &function) {
  Launch result;
  result.kernel = cursor["kernel"].asString();
  JsonCursor operands = cursor["operands"];
  for (size_t i = 0; i != operands.size(); ++i)
    result.operands.push_back(readOperand(operands[i], function));
  if (auto dimensions = cursor.find("dimensions")) {
    refuseRows(cursor, {"leading", "combines", "any_order"});
    result.dimensions = readDimensions(*dimensions);
    result.maps = readMaps(operands, function, result);
  } else {
    readRowSpaces(cursor, function, result);
  }

  JsonCursor variants = cursor["variants"];
  for (size_t i = 0; i != variants.size(); ++i)
    result.variants.push_back(readVariant(variants[i], function, result));
  if (result.variants.empty())
    variants.fail("expected at least one variant");
  if (auto overlap = cursor.find("overlap_next"))
    result.overlapNext = overlap->asBool();
  return result;
}
