//===- MetadataReader.cpp - Metadata from JSON ----------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/metadata/MetadataReader.h"
#include "runtime/Text.h"
#include "runtime/metadata/DimensionReader.h"
#include "runtime/metadata/ExpressionReader.h"
#include "runtime/metadata/JsonCursor.h"
#include "runtime/metadata/LaunchReader.h"
#include "runtime/metadata/OperandName.h"

#include <algorithm>
#include <limits>

using namespace bastile::runtime;

static constexpr const char *schemaName = "bastile.kernels";
static constexpr int64_t schemaVersion = 7;

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
    if (size.isNull())
      result.shape.push_back(std::nullopt);
    else
      result.shape.push_back(size.asInteger());
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

/// Reads a piece of an input, an output or a temporary.
static PieceSpec readPiece(const JsonCursor &cursor, const Function &function) {
  PieceSpec result;
  result.whole = readOperand(cursor, function);
  if (result.whole.kind == Operand::Kind::Piece)
    cursor.fail("a piece is none of another piece");
  const size_t rank = function.rank(result.whole);
  result.dimension = cursor["dimension"].asIndex(rank, "dimensions");
  result.count = cursor["count"].asInteger(/*least=*/2);
  result.index =
      cursor["index"].asIndex(static_cast<size_t>(result.count), "pieces");
  if (auto flag = cursor.find("interleaved"))
    result.interleaved = flag->asBool();
  if (result.interleaved && result.dimension + 1 == rank)
    cursor["interleaved"].fail("elements of rows are neighbours");
  std::optional<int64_t> size =
      function.fixedSize(result.whole, result.dimension);
  if (!size || *size % result.count != 0)
    cursor["count"].fail(concat(describe(function, result.whole), " has no ",
                                result.count,
                                " pieces of equal length in every call"));
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
  if (auto pieces = cursor.find("pieces"))
    for (size_t i = 0; i != pieces->size(); ++i)
      result.pieces.push_back(readPiece((*pieces)[i], result));
  JsonCursor launches = cursor["launches"];
  for (size_t i = 0; i != launches.size(); ++i)
    result.launches.push_back(readLaunch(launches[i], result));
  for (unsigned i = 0; i != result.inputs.size(); ++i)
    result.inputs[i].strided = isStrided(result, Operand::Kind::Input, i);
  for (unsigned i = 0; i != result.outputs.size(); ++i)
    result.outputs[i].strided = isStrided(result, Operand::Kind::Output, i);
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
