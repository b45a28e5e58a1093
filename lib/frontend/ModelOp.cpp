//===- ModelOp.cpp - Model ops by their names -----------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/frontend/ModelOp.h"

#include "bastile/Registration.h"
#include "dialect/Tile.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"

using namespace mlir;
using namespace bastile;
using runtime::Error;
using runtime::Expected;

DialectRegistry bastile::makeDialectRegistry() {
  DialectRegistry registry;
  registerDialects(registry);
  return registry;
}

void bastile::loadFunctionDialects(MLIRContext &context) {
  context.loadDialect<arith::ArithDialect, func::FuncDialect, math::MathDialect,
                      tile::TileDialect>();
}

Messages::Messages(MLIRContext &context)
    : handler(&context, [this](Diagnostic &diagnostic) {
        if (!text.empty())
          text += "\n";
        text += diagnostic.str();
        return success();
      }) {}

Error Messages::fail(const llvm::Twine &fallback) {
  std::string message = text.empty() ? fallback.str() : std::move(text);
  text.clear();
  return Error(std::move(message));
}

static Error addAttributes(Builder &builder, Messages &messages,
                           const ModelOpRequest &request,
                           OperationState &state) {
  ArrayRef<StringAttr> known =
      state.name.getRegisteredInfo()->getAttributeNames();
  for (const auto &[name, text] : request.attributes) {
    if (!llvm::is_contained(known, builder.getStringAttr(name)))
      return Error("has no attribute '" + name + "'");
    Attribute value = parseAttribute(text, builder.getContext());
    if (!value)
      return messages.fail("attribute '" + name + "' cannot be read");
    state.addAttribute(name, value);
  }
  // An op with several optional operands has an attribute that says which are
  // present.
  StringAttr key = builder.getStringAttr("operandSegmentSizes");
  if (llvm::is_contained(known, key)) {
    auto segments =
        llvm::map_to_vector(request.operands, [](Value operand) -> int32_t {
          return bool(operand);
        });
    state.addAttribute(key, builder.getDenseI32ArrayAttr(segments));
  }
  return Error::success();
}

static Error addResults(Builder &builder, Messages &messages,
                        const ModelOpRequest &request, OperationState &state) {
  MLIRContext *context = builder.getContext();
  for (const std::string &text : request.results) {
    Type type = parseType(text, context);
    if (!type)
      return messages.fail("result type '" + text + "' cannot be read");
    state.types.push_back(type);
  }
  if (!request.results.empty())
    return Error::success();
  auto *inference = state.name.getInterface<InferTypeOpInterface>();
  if (!inference)
    return Error("the types of its results do not follow from its operands and "
                 "have to be given: 'results', each as in \"tensor<?x1xf32>\"");
  DictionaryAttr dictionary = state.attributes.getDictionary(context);
  // An op with properties reads its attributes from those.
  llvm::SmallVector<char> memory(state.name.getOpPropertyByteSize());
  OpaqueProperties properties(memory.empty() ? nullptr : memory.data());
  if (properties) {
    state.name.initOpProperties(properties, OpaqueProperties(nullptr));
    if (failed(state.name.setOpPropertiesFromAttribute(
            state.name, properties, dictionary,
            [&] { return mlir::emitError(state.location); })))
      return messages.fail("its attributes cannot be read");
  }
  LogicalResult inferred = inference->inferReturnTypes(
      context, state.location, state.operands, dictionary, properties,
      state.regions, state.types);
  if (properties)
    state.name.destroyOpProperties(properties);
  if (failed(inferred))
    return messages.fail("the types of its results cannot be inferred");
  return Error::success();
}

/// Gives `state` the operands, attributes and result types of the op.
static Error prepare(Builder &builder, Messages &messages,
                     const ModelOpRequest &request, OperationState &state) {
  if (!state.name.hasInterface<tile::DecomposableOpInterface>())
    return Error("the dialect has no op '" + request.op + "'");
  for (Value operand : request.operands)
    if (operand)
      state.operands.push_back(operand);
  if (Error error = addAttributes(builder, messages, request, state))
    return error;
  return addResults(builder, messages, request, state);
}

static OperationName getName(OpBuilder &builder,
                             const ModelOpRequest &request) {
  return OperationName("tile." + request.op, builder.getContext());
}

Expected<SmallVector<Type>>
bastile::inferModelOp(OpBuilder &builder, Messages &messages,
                      const ModelOpRequest &request) {
  OperationState state(builder.getUnknownLoc(), getName(builder, request));
  if (Error error = prepare(builder, messages, request, state))
    return error;
  return SmallVector<Type>(state.types.begin(), state.types.end());
}

Expected<Operation *> bastile::createModelOp(OpBuilder &builder,
                                             Messages &messages,
                                             const ModelOpRequest &request) {
  OperationState state(builder.getUnknownLoc(), getName(builder, request));
  if (Error error = prepare(builder, messages, request, state))
    return error;
  Operation *operation = builder.create(state);
  if (succeeded(verify(operation)))
    return operation;
  operation->erase();
  return messages.fail("is not valid");
}
