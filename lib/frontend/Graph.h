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

/// Whether `element` is a type of integers that formulas compute with: no
/// conditions.
bool isInteger(mlir::Type element);

struct GraphValue {
  /// The MLIR value; null for a number.
  mlir::Value value;
  /// The sizes of an example; -1 for a size that is not known.
  llvm::SmallVector<int64_t> sizes;
  /// The element type that the value has outside of formulas; null for the
  /// result of a formula. `value` may hold it extended.
  mlir::Type ownType;
  double number = 0;
  /// The number, if it is an integer.
  std::optional<int64_t> integer = std::nullopt;

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

  /// Prints a value's shape and type, as in "(8, 64) of bf16".
  std::string describe(Id id) const;
  /// The value in its own type.
  mlir::Value getRaw(Id id);
  /// The value as an operand of formulas; fails if it is not of floats.
  Expected<tile::Expr> getExpr(Id id);
  /// The value as an operand of formulas; integers become float32 or float64,
  /// conditions 0 and 1.
  Expected<tile::Expr> getConverted(Id id, bool isDouble);
  /// The value as integers of `type`.
  Expected<mlir::Value> getIntegers(Id id, mlir::IntegerType type);
  /// The highest precision, float32 at least, that a formula of any of the
  /// values computes in.
  mlir::Type getWideType(llvm::ArrayRef<Id> ids);
  /// The values, which must be of floats, all in the highest precision that a
  /// formula of any of them computes in.
  Expected<llvm::SmallVector<mlir::Value>> getWide(llvm::ArrayRef<Id> ids);
  /// One value in the precision that `getWide` gives `others`; unchanged unless
  /// it is of floats of 16 bits or more.
  mlir::Value getWideIfFloat(Id id, llvm::ArrayRef<Id> others);
  bool haveSeveralFloatTypes(llvm::ArrayRef<Id> ids);

  /// What `formula` makes of the values, broadcast to one shape, whose sizes
  /// are put into `sizes`.
  Expected<mlir::Value> apply(const Formula &formula, llvm::ArrayRef<Id> ids,
                              llvm::SmallVectorImpl<int64_t> &sizes);

  /// Fails if the columns of the value have a size that only a call knows.
  runtime::Error requireFixedColumns(Id id);
  /// The product of two values: `GraphBuilder::multiply`.
  Expected<Id> multiply(Id a, Id b, int64_t contractA, int64_t contractB);
  /// The two values as factors of one type.
  Expected<std::pair<mlir::Value, mlir::Value>> getFactors(Id a, Id b);
  /// The arguments that have the dimension of `value` at `place`, and where.
  std::vector<std::pair<unsigned, unsigned>> findArguments(mlir::Value value,
                                                           unsigned place);

  /// The arguments that give the values free leading sizes where others of them
  /// have fixed ones: `GraphBuilder::findFreeSizes`.
  std::vector<std::pair<unsigned, unsigned>>
  findFreeSizes(llvm::ArrayRef<Id> ids);

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
  /// The type in which `formula` computes with integers; null if it computes
  /// with floats, or with conditions.
  Expected<mlir::IntegerType> getIntegerType(const Formula &formula,
                                             llvm::ArrayRef<Id> ids);
  runtime::Error checkKinds(llvm::ArrayRef<Id> ids, llvm::StringRef kinds,
                            bool takesIntegers = false);
  /// The values as numbers of `wide` or, where they are conditions, as these,
  /// broadcast to one shape.
  Expected<llvm::SmallVector<mlir::Value>>
  broadcast(llvm::ArrayRef<Id> ids, mlir::Type wide,
            llvm::SmallVectorImpl<int64_t> &sizes);
  runtime::Error findCommonSizes(llvm::ArrayRef<Id> ids,
                                 llvm::SmallVectorImpl<int64_t> &sizes);
  /// One of `ids` that has the leading sizes of `sizes`.
  const GraphValue *findLeader(llvm::ArrayRef<Id> ids,
                               llvm::ArrayRef<int64_t> sizes);
  mlir::Value makeNumber(const GraphValue &value, mlir::RankedTensorType type,
                         mlir::Value like);
  mlir::Value widen(mlir::Value value, mlir::Type element);
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
