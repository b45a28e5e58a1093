//===- Graph.h - The values of a function in the making ---------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// What GraphBuilder.h hides: values as MLIR's, with what their types do not
// say.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_FRONTEND_GRAPH_H
#define BASTILE_LIB_FRONTEND_GRAPH_H

#include "dialect/Tile.h"
#include "lib/frontend/Formulas.h"
#include "lib/frontend/ModelOp.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace bastile {

/// "(8, 64)".
std::string print(llvm::ArrayRef<int64_t> sizes);

struct GraphValue {
  /// Null for a number.
  mlir::Value value;
  /// Those of an example; -1 for one that is not known.
  llvm::SmallVector<int64_t> sizes;
  /// The element type that the value is of where it is not computed with; null
  /// for what a formula computed. `value` may hold it extended.
  mlir::Type ownType;
  double number = 0;

  bool isNumber() const { return !value; }
  mlir::RankedTensorType getType() const {
    return mlir::cast<mlir::RankedTensorType>(value.getType());
  }
};

/// One function and the values in it.
class Graph {
public:
  using Id = size_t;
  template <typename T>
  using Expected = runtime::Expected<T>;

  explicit Graph(llvm::StringRef name);

  Id add(GraphValue value);
  Id addArgument(llvm::StringRef name, mlir::RankedTensorType type,
                 llvm::ArrayRef<int64_t> sizes);

  /// The value in the type it is of.
  mlir::Value getRaw(Id id);
  /// The value to compute with; fails if it is not of floats.
  Expected<tile::Expr> getExpr(Id id);
  /// The same, also of integers, which become float32 or float64.
  Expected<tile::Expr> getConverted(Id id, bool isDouble);
  /// The values of floats, all in the highest precision that formulas of one of
  /// them compute in.
  Expected<llvm::SmallVector<mlir::Value>> getWide(llvm::ArrayRef<Id> ids);
  /// The same of one among `others`; others than floats of 16 bits or more as
  /// they are.
  mlir::Value getWideIfFloat(Id id, llvm::ArrayRef<Id> others);
  bool haveSeveralFloatTypes(llvm::ArrayRef<Id> ids);

  /// The values in one shape, the sizes of which are put into `sizes`. `kinds`
  /// has a letter for each, as `Formula` does.
  Expected<llvm::SmallVector<mlir::Value>>
  broadcast(llvm::ArrayRef<Id> ids, llvm::StringRef kinds,
            llvm::SmallVectorImpl<int64_t> &sizes);

  /// The types that the results of an op are of, `actual` being those that they
  /// have: null for those that only have the type of a formula because an
  /// operand has.
  llvm::SmallVector<mlir::Type>
  getOwnResultTypes(const ModelOpRequest &request, mlir::TypeRange actual,
                    llvm::ArrayRef<std::optional<Id>> operands);
  /// The sizes of an op's result, whose leading ones are those of its operands.
  llvm::SmallVector<int64_t> getResultSizes(mlir::RankedTensorType type,
                                            llvm::ArrayRef<Id> operands);

  /// The value as the function returns it.
  Expected<mlir::Value> getResult(Id id);
  /// Returns `results` and prints the module.
  Expected<std::string> print(llvm::ArrayRef<mlir::Value> results);

  mlir::MLIRContext context;
  Messages messages;
  mlir::ImplicitLocOpBuilder builder;
  std::vector<GraphValue> values;

private:
  mlir::Type getWideType(llvm::ArrayRef<Id> ids);
  runtime::Error checkKinds(llvm::ArrayRef<Id> ids, llvm::StringRef kinds);
  runtime::Error findCommonSizes(llvm::ArrayRef<Id> ids,
                                 llvm::SmallVectorImpl<int64_t> &sizes);
  /// One of `ids` that has the leading sizes of `sizes`.
  const GraphValue *findLeader(llvm::ArrayRef<Id> ids,
                               llvm::ArrayRef<int64_t> sizes);
  mlir::Value makeNumber(double number, mlir::RankedTensorType type,
                         mlir::Value like);
  mlir::Value expand(const GraphValue &value, mlir::RankedTensorType type,
                     mlir::Value like);
  void eraseUnused();

  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp function;
  /// That of results that have none of their own; null until there is one.
  mlir::Type defaultType;
};

} // namespace bastile

#endif // BASTILE_LIB_FRONTEND_GRAPH_H
