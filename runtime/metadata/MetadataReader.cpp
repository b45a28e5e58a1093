//===- MetadataReader.cpp - Metadata from JSON ----------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/metadata/MetadataReader.h"
#include "runtime/Text.h"
#include "runtime/metadata/JsonCursor.h"
#include "runtime/metadata/OperandName.h"

#include <algorithm>
#include <limits>

using namespace bastile::runtime;

static constexpr const char *schemaName = "bastile.kernels";
static constexpr int64_t schemaVersion = 3;

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

namespace {
struct Operator {
  const char *key;
  Expression::Kind kind;
};
} // namespace

static constexpr Operator operators[] = {
    {"ceildiv", Expression::Kind::CeilDiv}, {"mul", Expression::Kind::Mul},
    {"add", Expression::Kind::Add},         {"min", Expression::Kind::Min},
    {"max", Expression::Kind::Max},
};

static Expression readInputSize(const JsonCursor &cursor,
                                const Function &function) {
  Expression result;
  result.kind = Expression::Kind::InputSize;
  result.input = cursor["input"].asIndex(function.inputs.size(), "inputs");
  result.dimension = cursor["dimension"].asIndex(
      function.inputs[result.input].shape.size(), "dimensions");
  return result;
}

/// The compiler's expressions have a few levels. Each level takes some of the
/// stack, here and at every launch.
static constexpr unsigned maxExpressionDepth = 64;

/// Reads an expression over the inputs of `function`; "rows" has a meaning
/// only within a `launch`.
static Expression readExpression(const JsonCursor &cursor,
                                 const Function &function, const Launch *launch,
                                 unsigned depth = 1) {
  if (depth > maxExpressionDepth)
    cursor.fail(
        concat("an expression of more than ", maxExpressionDepth, " levels"));
  Expression result;
  if (cursor.isInteger()) {
    result.value = cursor.asInteger();
    return result;
  }
  if (cursor.isString()) {
    std::string leaf = cursor.asString();
    if (leaf == "rows" && launch)
      result.kind = Expression::Kind::Rows;
    else if (leaf == "multiprocessors")
      result.kind = Expression::Kind::Multiprocessors;
    else
      cursor.fail(concat("no size is called '", leaf, "' here"));
    return result;
  }
  if (cursor.has("input"))
    return readInputSize(cursor, function);
  if (cursor.has("clusters")) {
    result.kind = Expression::Kind::Clusters;
    result.value = cursor["clusters"].asInteger();
    if (result.value < 1)
      cursor["clusters"].fail(
          concat("a cluster of ", result.value, " blocks has none"));
    return result;
  }
  if (cursor.has("rows") && launch) {
    result.kind = Expression::Kind::Rows;
    result.space = cursor["rows"].asIndex(launch->spaces, "spaces");
    return result;
  }

  for (const Operator &candidate : operators) {
    std::optional<JsonCursor> operands = cursor.find(candidate.key);
    if (!operands)
      continue;
    result.kind = candidate.kind;
    for (size_t i = 0; i != operands->size(); ++i)
      result.operands.push_back(
          readExpression((*operands)[i], function, launch, depth + 1));
    if (result.operands.empty())
      operands->fail("expected at least one operand");
    if (candidate.kind == Expression::Kind::CeilDiv &&
        result.operands.size() != 2)
      operands->fail(
          concat("expected two operands, got ", result.operands.size()));
    return result;
  }
  cursor.fail("expected an integer, the name of a size, "
              "{\"input\", \"dimension\"}, {\"clusters\"} or a known "
              "operator");
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

static ElementType readType(const JsonCursor &cursor) {
  std::string spelling = cursor.asString();
  std::optional<ElementType> type = parseElementType(spelling);
  if (!type)
    cursor.fail(concat("unknown type '", spelling, "'"));
  return *type;
}

static size_t readRank(const JsonCursor &shape) {
  if (shape.size() > maxRank)
    shape.fail(concat("rank ", shape.size(), " is above ", maxRank));
  return shape.size();
}

static InputSpec readInput(const JsonCursor &cursor) {
  InputSpec result;
  result.name = cursor["name"].asString();
  result.type = readType(cursor["type"]);
  JsonCursor shape = cursor["shape"];
  size_t rank = readRank(shape);
  for (size_t i = 0; i != rank; ++i) {
    JsonCursor size = shape[i];
    if (!size.isNull())
      result.shape.push_back(size.asInteger());
    else if (i + 1 != rank)
      result.shape.push_back(std::nullopt);
    else
      size.fail("the last dimension must be static");
  }
  return result;
}

static BufferSpec readBuffer(const JsonCursor &cursor,
                             const Function &function) {
  BufferSpec result;
  result.type = readType(cursor["type"]);
  JsonCursor shape = cursor["shape"];
  size_t rank = readRank(shape);
  for (size_t i = 0; i != rank; ++i)
    result.shape.push_back(
        readExpression(shape[i], function, /*launch=*/nullptr));
  return result;
}

/// Reads the input whose memory an output may take. It must have the same type
/// and, as far as the document says, the same sizes.
static unsigned readAlias(const JsonCursor &cursor, const BufferSpec &output,
                          const Function &function) {
  const unsigned index = cursor.asIndex(function.inputs.size(), "inputs");
  const InputSpec &input = function.inputs[index];
  bool fits =
      input.type == output.type && input.shape.size() == output.shape.size();
  for (size_t d = 0; fits && d != output.shape.size(); ++d)
    if (input.shape[d] && output.shape[d].kind == Expression::Kind::Constant)
      fits = *input.shape[d] == output.shape[d].value;
  if (!fits)
    cursor.fail(concat("input '", input.name, "' of shape ", print(input.shape),
                       " and type ", name(input.type), " is not like output '",
                       output.name, "'"));
  for (const BufferSpec &other : function.outputs)
    if (other.mayAlias == index)
      cursor.fail(concat("output '", other.name,
                         "' may take the memory of input '", input.name,
                         "' already"));
  // The zeros would be written before the launch that reads the input.
  if (output.zeroIfNoRows)
    cursor.fail("an output with 'zero_if_no_rows' needs memory of its own");
  return index;
}

static BufferSpec readOutput(const JsonCursor &cursor,
                             const Function &function) {
  BufferSpec result = readBuffer(cursor, function);
  result.name = cursor["name"].asString();
  if (auto flag = cursor.find("zero_if_no_rows"))
    result.zeroIfNoRows = flag->asBool();
  if (auto input = cursor.find("may_alias"))
    result.mayAlias = readAlias(*input, result, function);
  return result;
}

static BufferSpec readTemporary(const JsonCursor &cursor,
                                const Function &function) {
  BufferSpec result = readBuffer(cursor, function);
  if (auto by = cursor.find("zeroed_by")) {
    std::string spelling = by->asString();
    result.zeroed = spelling == "runtime";
    if (!result.zeroed && spelling != "nobody")
      by->fail(concat("expected 'nobody' or 'runtime', got '", spelling, "'"));
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

static Operand readOperand(const JsonCursor &cursor, const Function &function,
                           unsigned leading, size_t operandCount) {
  Operand result;
  size_t rank = 0;
  if (auto input = cursor.find("input")) {
    result.kind = Operand::Kind::Input;
    result.index = input->asIndex(function.inputs.size(), "inputs");
    rank = function.inputs[result.index].shape.size();
  } else if (auto output = cursor.find("output")) {
    result.kind = Operand::Kind::Output;
    result.index = output->asIndex(function.outputs.size(), "outputs");
    rank = function.outputs[result.index].shape.size();
  } else {
    result.kind = Operand::Kind::Temporary;
    result.index =
        cursor["temporary"].asIndex(function.temporaries.size(), "temporaries");
    rank = function.temporaries[result.index].shape.size();
  }
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
  return result;
}

static Argument readArgument(const JsonCursor &cursor, const Launch &launch,
                             unsigned leading) {
  Argument result;
  if (auto size = cursor.find("size")) {
    result.kind = Argument::Kind::Size;
    result.dimension = size->asIndex(leading, "leading dimensions");
    if (auto space = cursor.find("space"))
      result.space = space->asIndex(launch.spaces, "spaces");
    return result;
  }
  if (auto pointer = cursor.find("pointer")) {
    result.kind = Argument::Kind::Pointer;
    result.operand = pointer->asIndex(launch.operands.size(), "operands");
    return result;
  }
  if (!cursor.has("stride"))
    cursor.fail("expected 'size', 'pointer' or 'stride'");
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

static Variant readVariant(const JsonCursor &cursor, const Function &function,
                           const Launch &launch) {
  Variant result;
  result.entry = cursor["entry"].asString();
  result.leading = readLeading(cursor["leading"]);

  result.alignment = readPowers(cursor["alignment"], launch);
  if (auto phase = cursor.find("phase"))
    result.phase = readPhases(*phase, launch);
  else
    result.phase.assign(launch.operands.size(), 1);

  JsonCursor arguments = cursor["arguments"];
  for (size_t i = 0; i != arguments.size(); ++i)
    result.arguments.push_back(
        readArgument(arguments[i], launch, result.leading));

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

static Launch readLaunch(const JsonCursor &cursor, const Function &function) {
  Launch result;
  result.kernel = cursor["kernel"].asString();
  result.leading = readLeading(cursor["leading"]);
  if (auto combines = cursor.find("combines"))
    result.combines = readCombines(*combines, result.leading);
  JsonCursor operands = cursor["operands"];
  for (size_t i = 0; i != operands.size(); ++i)
    result.operands.push_back(
        readOperand(operands[i], function, result.leading, operands.size()));
  for (const Operand &operand : result.operands)
    result.spaces = std::max(result.spaces, operand.space + 1);
  for (unsigned space = 0; space != result.spaces; ++space)
    checkSpace(cursor, result, space);

  JsonCursor variants = cursor["variants"];
  for (size_t i = 0; i != variants.size(); ++i)
    result.variants.push_back(readVariant(variants[i], function, result));
  if (result.variants.empty())
    variants.fail("expected at least one variant");
  if (auto overlap = cursor.find("overlap_next"))
    result.overlapNext = overlap->asBool();
  return result;
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

static std::optional<Backward::Source>
findSource(const JsonCursor &cursor, const char *key,
           Backward::Source::Kind kind, size_t count, const char *what) {
  if (auto index = cursor.find(key))
    return Backward::Source{kind, index->asIndex(count, what)};
  return std::nullopt;
}

static Backward::Source readKept(const JsonCursor &cursor,
                                 const Function &function) {
  using Kind = Backward::Source::Kind;
  const size_t outputs = function.outputs.size();
  if (auto found =
          findSource(cursor, "grad", Kind::Gradient, outputs, "outputs"))
    return *found;
  if (auto found = findSource(cursor, "input", Kind::Input,
                              function.inputs.size(), "inputs"))
    return *found;
  if (auto found =
          findSource(cursor, "output", Kind::Output, outputs, "outputs"))
    return *found;
  cursor.fail("expected 'grad', 'input' or 'output'");
}

static Backward readBackward(const JsonCursor &cursor,
                             const Function &function) {
  using Kind = Backward::Source::Kind;
  Backward result;
  if (auto name = cursor.find("function"))
    result.function = name->asString();
  if (auto inputs = cursor.find("inputs"))
    for (size_t i = 0; i != inputs->size(); ++i)
      result.inputs.push_back(readKept((*inputs)[i], function));
  JsonCursor gradients = cursor["gradients"];
  for (const InputSpec &input : function.inputs) {
    auto gradient = gradients.find(input.name.c_str());
    if (!gradient) {
      result.gradients.push_back(std::nullopt);
      continue;
    }
    // The number of results is known once all functions are read.
    auto found = findSource(*gradient, "result", Kind::Result,
                            std::numeric_limits<unsigned>::max(), "results");
    if (!found)
      found = findSource(*gradient, "grad", Kind::Gradient,
                         function.outputs.size(), "outputs");
    if (!found)
      gradient->fail("expected 'result' or 'grad'");
    result.gradients.push_back(found);
  }
  return result;
}

/// Checks what each `backward` says of the function that computes gradients.
static void checkBackward(const JsonCursor &cursor, const Metadata &metadata,
                          const Function &function) {
  if (!function.backward)
    return;
  const Function *backward = nullptr;
  if (!function.backward->function.empty()) {
    backward = metadata.find(function.backward->function);
    if (!backward)
      cursor["function"].fail(
          concat("there is no function '", function.backward->function, "'"));
    if (backward->inputs.size() != function.backward->inputs.size())
      cursor["inputs"].fail(concat("'", backward->name, "' takes ",
                                   backward->inputs.size(), " inputs"));
  }
  for (const auto &gradient : function.backward->gradients)
    if (gradient && gradient->kind == Backward::Source::Kind::Result &&
        (!backward || gradient->index >= backward->outputs.size()))
      cursor["gradients"].fail(concat("there is no result ", gradient->index));
}

//===----------------------------------------------------------------------===//
// Documents
//===----------------------------------------------------------------------===//

static Function readFunction(const JsonCursor &cursor) {
  Function result;
  result.name = cursor["name"].asString();
  JsonCursor inputs = cursor["inputs"];
  for (size_t i = 0; i != inputs.size(); ++i)
    result.inputs.push_back(readInput(inputs[i]));
  JsonCursor outputs = cursor["outputs"];
  for (size_t i = 0; i != outputs.size(); ++i)
    result.outputs.push_back(readOutput(outputs[i], result));
  if (auto temporaries = cursor.find("temporaries"))
    for (size_t i = 0; i != temporaries->size(); ++i)
      result.temporaries.push_back(readTemporary((*temporaries)[i], result));
  JsonCursor launches = cursor["launches"];
  for (size_t i = 0; i != launches.size(); ++i)
    result.launches.push_back(readLaunch(launches[i], result));
  if (auto backward = cursor.find("backward"))
    result.backward = readBackward(*backward, result);
  return result;
}

static Metadata readDocument(const JsonCursor &cursor) {
  std::string schema = cursor["schema"].asString();
  if (schema != schemaName)
    cursor["schema"].fail(
        concat("expected '", schemaName, "', got '", schema, "'"));
  int64_t version = cursor["version"].asInteger();
  if (version < 1 || version > schemaVersion)
    cursor["version"].fail(concat("version ", version,
                                  " is unknown to this runtime, which reads "
                                  "versions 1 to ",
                                  schemaVersion));
  Metadata result;
  result.compiler = cursor["compiler"].asString();
  result.target = cursor["target"].asString();
  JsonCursor functions = cursor["functions"];
  for (size_t i = 0; i != functions.size(); ++i)
    result.functions.push_back(readFunction(functions[i]));
  for (size_t i = 0; i != functions.size(); ++i)
    if (auto backward = functions[i].find("backward"))
      checkBackward(*backward, result, result.functions[i]);
  return result;
}

Expected<Metadata>
bastile::runtime::readMetadataDocument(std::string_view json) {
  try {
    nlohmann::json document = nlohmann::json::parse(json);
    return readDocument({document, ""});
  } catch (const JsonError &error) {
    return makeError("metadata: ", error.what());
  } catch (const nlohmann::json::exception &error) {
    return makeError("metadata: not JSON: ", error.what());
  }
}
