//===- OpText.cpp - A function around one model op ------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/TextCompiler.h"
#include "dialect/Tile.h"
#include "lib/frontend/ModelOp.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace bastile;
using runtime::Error;
using runtime::Expected;

/// Adds the operands that are present to the arguments of `func`, and all of
/// them to `request`.
static Error addOperands(const std::vector<OperandType> &operands,
                         Messages &messages, func::FuncOp func,
                         ModelOpRequest &request) {
  Builder builder(func.getContext());
  Block &body = func.getBody().emplaceBlock();
  for (const OperandType &operand : operands) {
    request.operands.emplace_back();
    if (!operand.type)
      continue;
    Type type = parseType(*operand.type, func.getContext());
    if (!type)
      return messages.fail("operand '" + operand.name + "' has no type");
    request.operands.back() = body.addArgument(type, func.getLoc());
  }
  func.setFunctionType(builder.getFunctionType(body.getArgumentTypes(), {}));
  unsigned index = 0;
  for (const OperandType &operand : operands)
    if (operand.type)
      func.setArgAttr(index++, tile::TileDialect::kNameAttrName,
                      builder.getStringAttr(operand.name));
  return Error::success();
}

Expected<std::string> bastile::buildOpText(
    const std::string &op, const std::vector<OperandType> &operands,
    const std::vector<std::pair<std::string, std::string>> &attributes,
    const std::vector<std::string> &results,
    const std::vector<unsigned> &returned) {
  MLIRContext context(makeDialectRegistry(), MLIRContext::Threading::DISABLED);
  Messages messages(context);
  loadFunctionDialects(context);
  OpBuilder builder(&context);
  Location location = builder.getUnknownLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(location);
  auto func =
      func::FuncOp::create(location, op, builder.getFunctionType({}, {}));
  module->push_back(func);

  ModelOpRequest request{op, {}, attributes, results};
  if (Error error = addOperands(operands, messages, func, request))
    return error;
  builder.setInsertionPointToEnd(&func.front());
  Expected<Operation *> operation = createModelOp(builder, messages, request);
  if (!operation)
    return operation.takeError();
  SmallVector<Value> values((*operation)->getResults());
  if (!returned.empty()) {
    values.clear();
    for (unsigned index : returned) {
      if (index >= (*operation)->getNumResults())
        return Error("has no result " + std::to_string(index));
      values.push_back((*operation)->getResult(index));
    }
  }
  func::ReturnOp::create(builder, location, values);
  func.setFunctionType(builder.getFunctionType(
      func.getFunctionType().getInputs(), TypeRange(ValueRange(values))));
  std::string text;
  llvm::raw_string_ostream(text) << *module;
  return text;
}
