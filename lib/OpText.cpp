//===- OpText.cpp - A function around one model op ------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/Registration.h"
#include "bastile/TextCompiler.h"
#include "dialect/Tile.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"

using namespace mlir;
using bastile::OperandType;
using bastile::runtime::Error;
using bastile::runtime::Expected;

namespace {

/// Builds the function; what the op's verifier has to say is collected.
class OpTextBuilder {
public:
  OpTextBuilder()
      : context(makeRegistry(), MLIRContext::Threading::DISABLED),
        builder(&context), handler(&context, [&](Diagnostic &diagnostic) {
          if (!messages.empty())
            messages += "\n";
          messages += diagnostic.str();
          return success();
        }) {
    context.loadAllAvailableDialects();
  }

  Expected<std::string>
  build(const std::string &op, const std::vector<OperandType> &operands,
        const std::vector<std::pair<std::string, std::string>> &attributes,
        const std::vector<std::string> &results,
        const std::vector<unsigned> &returned);

private:
  static DialectRegistry makeRegistry() {
    DialectRegistry registry;
    bastile::registerDialects(registry);
    return registry;
  }
  Error fail(const llvm::Twine &fallback) const {
    return Error(messages.empty() ? fallback.str() : messages);
  }

  Error addOperands(const std::vector<OperandType> &operands, func::FuncOp func,
                    OperationState &state);
  Error addAttributes(
      const std::vector<std::pair<std::string, std::string>> &attributes,
      OperationState &state);
  Error addResults(const std::vector<std::string> &results,
                   OperationState &state);

  MLIRContext context;
  Builder builder;
  std::string messages;
  ScopedDiagnosticHandler handler;
  /// Which of the op's operands are there.
  SmallVector<int32_t> segments;
};

} // namespace

Error OpTextBuilder::addOperands(const std::vector<OperandType> &operands,
                                 func::FuncOp func, OperationState &state) {
  Block &body = func.getBody().emplaceBlock();
  SmallVector<Type> types;
  for (const OperandType &operand : operands) {
    segments.push_back(operand.type.has_value());
    if (!operand.type)
      continue;
    Type type = parseType(*operand.type, &context);
    if (!type)
      return fail("operand '" + operand.name + "' has no type");
    types.push_back(type);
    state.operands.push_back(body.addArgument(type, builder.getUnknownLoc()));
  }
  func.setFunctionType(builder.getFunctionType(types, {}));
  unsigned index = 0;
  for (const OperandType &operand : operands)
    if (operand.type)
      func.setArgAttr(index++, bastile::tile::TileDialect::kNameAttrName,
                      builder.getStringAttr(operand.name));
  return Error::success();
}

Error OpTextBuilder::addAttributes(
    const std::vector<std::pair<std::string, std::string>> &attributes,
    OperationState &state) {
  ArrayRef<StringAttr> known =
      state.name.getRegisteredInfo()->getAttributeNames();
  for (const auto &[name, text] : attributes) {
    if (!llvm::is_contained(known, builder.getStringAttr(name)))
      return Error("has no attribute '" + name + "'");
    Attribute value = parseAttribute(text, &context);
    if (!value)
      return fail("attribute '" + name + "' cannot be read");
    state.addAttribute(name, value);
  }
  // Where several operands may be absent, the op says which ones are there.
  StringAttr key = builder.getStringAttr("operandSegmentSizes");
  if (llvm::is_contained(known, key))
    state.addAttribute(key, builder.getDenseI32ArrayAttr(segments));
  return Error::success();
}

Error OpTextBuilder::addResults(const std::vector<std::string> &results,
                                OperationState &state) {
  for (const std::string &text : results) {
    Type type = parseType(text, &context);
    if (!type)
      return fail("result type '" + text + "' cannot be read");
    state.types.push_back(type);
  }
  if (!results.empty())
    return Error::success();
  auto *inference = state.name.getInterface<InferTypeOpInterface>();
  if (!inference)
    return Error("the types of its results do not follow from its operands and "
                 "have to be given");
  DictionaryAttr dictionary = state.attributes.getDictionary(&context);
  // An op that has properties reads its attributes from them.
  llvm::SmallVector<char> memory(state.name.getOpPropertyByteSize());
  OpaqueProperties properties(memory.empty() ? nullptr : memory.data());
  if (properties) {
    state.name.initOpProperties(properties, OpaqueProperties(nullptr));
    if (failed(state.name.setOpPropertiesFromAttribute(
            state.name, properties, dictionary,
            [&] { return mlir::emitError(builder.getUnknownLoc()); })))
      return fail("its attributes cannot be read");
  }
  LogicalResult inferred = inference->inferReturnTypes(
      &context, builder.getUnknownLoc(), state.operands, dictionary, properties,
      state.regions, state.types);
  if (properties)
    state.name.destroyOpProperties(properties);
  if (failed(inferred))
    return fail("the types of its results cannot be inferred");
  return Error::success();
}

Expected<std::string> OpTextBuilder::build(
    const std::string &op, const std::vector<OperandType> &operands,
    const std::vector<std::pair<std::string, std::string>> &attributes,
    const std::vector<std::string> &results,
    const std::vector<unsigned> &returned) {
  Location location = builder.getUnknownLoc();
  OperationName name("tile." + op, &context);
  if (!name.hasInterface<bastile::tile::DecomposableOpInterface>())
    return Error("the dialect has no op '" + op + "'");

  OwningOpRef<ModuleOp> module = ModuleOp::create(location);
  auto func =
      func::FuncOp::create(location, op, builder.getFunctionType({}, {}));
  module->push_back(func);
  OperationState state(location, name);
  if (Error error = addOperands(operands, func, state))
    return error;
  if (Error error = addAttributes(attributes, state))
    return error;
  if (Error error = addResults(results, state))
    return error;
  OpBuilder ops = OpBuilder::atBlockEnd(&func.front());
  Operation *operation = ops.create(state);
  SmallVector<Value> values(operation->getResults());
  if (!returned.empty()) {
    values.clear();
    for (unsigned index : returned) {
      if (index >= operation->getNumResults())
        return Error("has no result " + std::to_string(index));
      values.push_back(operation->getResult(index));
    }
  }
  func::ReturnOp::create(ops, location, values);
  func.setFunctionType(builder.getFunctionType(
      func.getFunctionType().getInputs(), TypeRange(ValueRange(values))));
  if (failed(verify(*module)))
    return fail("is not valid");
  std::string text;
  llvm::raw_string_ostream(text) << *module;
  return text;
}

Expected<std::string> bastile::buildOpText(
    const std::string &op, const std::vector<OperandType> &operands,
    const std::vector<std::pair<std::string, std::string>> &attributes,
    const std::vector<std::string> &results,
    const std::vector<unsigned> &returned) {
  return OpTextBuilder().build(op, operands, attributes, results, returned);
}
