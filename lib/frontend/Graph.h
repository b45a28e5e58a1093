//===- Graph.h - The values of a function under construction ----*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The state behind GraphBuilder.h: MLIR values, with facts that their types do
// not hold.
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

/// Prints sizes as in "(8, 64)".
std::string print(llvm::ArrayRef<int64_t> sizes);

struct GraphValue {
  /// The MLIR value; null for a number.
  mlir::Value value;
  /// The sizes of an example; -1 for a size that is not known.
  llvm::SmallVector<int64_t> sizes;
  /// The element type that the value has outside of formulas; null for the
  /// result of a formula. `value` may hold it extended.
  mlir::Type ownType;
  double number = 0;

  bool isNumber() const { return !value; }
  mlir::RankedTensorType getType() const {
    return mlir::cast<mlir::RankedTensorType>(value.getType());
  }
};

/// A function and its values.
class Graph {
public:
  using Id = size_t;
  template <typename T>
  using Expected = runtime::Expected<T>;

  explicit Graph(llvm::StringRef name);

  Id add(GraphValue value);
  Id addArgument(llvm::StringRef name, mlir::RankedTensorType type,
                 llvm::ArrayRef<int64_t> sizes);

  /// The value in its own type.
  mlir::Value getRaw(Id id);
  /// The value as an operand of formulas; fails if it is not of floats.
  Expected<tile::Expr> getExpr(Id id);
  /// The value as an operand of formulas; integers become float32 or float64.
  Expected<tile::Expr> getConverted(Id id, bool isDouble);
  /// The values, which must be of floats, all in the highest precision that a
  /// formula of any of them computes in.
  Expected<llvm::SmallVector<mlir::Value>> getWide(llvm::ArrayRef<Id> ids);
  /// One value in the precision that `getWide` gives `others`; unchanged unless
  /// it is of floats of 16 bits or more.
  mlir::Value getWideIfFloat(Id id, llvm::ArrayRef<Id> others);
  bool haveSeveralFloatTypes(llvm::ArrayRef<Id> ids);

  /// The values broadcast to one shape, whose sizes are put into `sizes`.
  /// `kinds` has a letter for each value, as in `Formula`.
  Expected<llvm::SmallVector<mlir::Value>>
  broadcast(llvm::ArrayRef<Id> ids, llvm::StringRef kinds,
            llvm::SmallVectorImpl<int64_t> &sizes);

  /// The own types of an op's results, whose `actual` types may be wider: null
  /// for a result that has the type of a formula only because an operand has.
  llvm::SmallVector<mlir::Type>
  getOwnResultTypes(const ModelOpRequest &request, mlir::TypeRange actual,
                    llvm::ArrayRef<std::optional<Id>> operands);
  /// The sizes of an op's result, whose leading sizes are those of its
  /// operands.
  llvm::SmallVector<int64_t> getResultSizes(mlir::RankedTensorType type,
                                            llvm::ArrayRef<Id> operands);

  /// The value in the type in which the function returns it.
  Expected<mlir::Value> getResult(Id id);
  /// Returns `results`, some in the `places` of arguments, and prints the
  /// module.
  Expected<std::string> print(llvm::ArrayRef<mlir::Value> results,
                              llvm::ArrayRef<std::optional<unsigned>> places);

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
  /// The type of results without a type of their own; null until it is known.
  mlir::Type defaultType;
};

} // namespace bastile

#endif // BASTILE_LIB_FRONTEND_GRAPH_H
