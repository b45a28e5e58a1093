//===- GraphBuilder.h - Functions built op by op ----------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Builds the text of a function from formulas and model ops, for bindings that
// trace functions of other languages. Like TextCompiler.h, it needs no headers
// of MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_GRAPHBUILDER_H
#define BASTILE_GRAPHBUILDER_H

#include "bastile/runtime/Error.h"
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bastile {

/// A function under construction.
///
/// Formulas are those of dialect/Expression.h: they compute in float32, or in
/// float64 where an operand is of float64, and round nothing. Where all
/// operands are integers, arithmetic is that of integers, in the widest of
/// their types; beside floats they become floats. Operands of different shape
/// are broadcast as in NumPy. A model op takes operands in their own types and
/// rounds its results as it does anywhere; the result of a formula keeps the
/// type in which the formula computed.
class GraphBuilder {
public:
  /// The number of a value of the function.
  using Id = size_t;
  /// Names and values of attributes, spelled as in MLIR's generic form.
  using Attributes = std::vector<std::pair<std::string, std::string>>;

  /// The shape and the element type of a value.
  struct Description {
    /// The sizes of an example; -1 for a size that is not known.
    std::vector<int64_t> sizes;
    /// Which sizes are the same in every call.
    std::vector<bool> isFixed;
    /// The element type, as MLIR spells it.
    std::string element;
  };

  explicit GraphBuilder(const std::string &name);
  ~GraphBuilder();
  GraphBuilder(const GraphBuilder &) = delete;
  GraphBuilder &operator=(const GraphBuilder &) = delete;

  /// Adds an argument of type `type`, as in "tensor<?x2880xbf16>". Shapes are
  /// compared, and named in messages, by `sizes`, those of an example; without
  /// any, by those of the type.
  runtime::Expected<Id> addArgument(const std::string &name,
                                    const std::string &type,
                                    const std::vector<int64_t> &sizes = {});

  /// Adds a number, which takes the shape and the precision of the value that
  /// it is combined with.
  Id addNumber(double number);
  /// The same for an integer, which takes part in the arithmetic of integers.
  Id addInteger(int64_t number);

  /// Applies a formula of one operand ("exp"), two ("divide") or three
  /// ("select", of a condition and two values), or a comparison ("less").
  runtime::Expected<Id> apply(const std::string &function,
                              const std::vector<Id> &operands);

  /// Combines each row or each of its `groups` groups of neighbouring columns
  /// ("rowSum"), or all rows ("sumOfRows").
  runtime::Expected<Id> reduce(const std::string &function, Id operand,
                               int64_t groups = 1);

  /// The number of each element's column, from 0, in the shape of a value of
  /// rows.
  runtime::Expected<Id> numberColumns(Id like);

  /// The number of each element of a value of rows along `dimensions`, from 0,
  /// as i32. They are the last dimension alone or leading ones that follow each
  /// other, counted together; then each row has one number, in one column.
  runtime::Expected<Id> iota(Id like, const std::vector<int64_t> &dimensions);

  /// Repeats a value along the dimensions in which it has a size of 1 and
  /// `like` another one, to the shape of `like`.
  runtime::Expected<Id> expandAs(Id operand, Id like);

  /// Repeats each column `count` times.
  runtime::Expected<Id> repeatColumns(Id operand, int64_t count);

  /// Rounds or extends a value to `element`. Integers become the nearest float,
  /// floats are rounded towards zero to integers, the nearest one where they
  /// are beyond them; integers become narrower by losing high bits; conditions
  /// become 0 and 1.
  runtime::Expected<Id> convert(Id operand, const std::string &element);

  /// Multiplies the matrices of `a` and `b`, their last two dimensions, and
  /// sums over the dimensions `contractA` and `contractB` of these, each 0
  /// or 1. Other dimensions are broadcast. Factors are multiplied in the type
  /// that they have outside of formulas; one that a formula computed is rounded
  /// to that of the other. The columns of the result may have a size that only
  /// a call knows: then they go with nothing but reductions of whole rows, and
  /// what is computed element by element. `findFreeColumns` helps to fix it.
  runtime::Expected<Id> multiply(Id a, Id b, int64_t contractA,
                                 int64_t contractB);
  /// Where `value` is a right factor that is summed over dimension `contract`
  /// of its matrices, the other one becomes the columns of the product. Returns
  /// the numbers of the arguments that have to have a fixed size for these
  /// columns to have one, and in which dimension; none if the size is fixed.
  std::vector<std::pair<unsigned, unsigned>> findFreeColumns(Id value,
                                                             int64_t contract);

  /// Where some of `values`, operands of one formula, have a fixed leading size
  /// and others a free one, these must have a fixed one, too. Returns the
  /// arguments that have to, and in which dimension.
  std::vector<std::pair<unsigned, unsigned>>
  findFreeSizes(const std::vector<Id> &values);

  runtime::Expected<std::vector<Id>> split(Id operand, int64_t count,
                                           bool interleaved);
  runtime::Expected<Id> join(const std::vector<Id> &pieces, bool interleaved);

  /// Applies model op `op`, named without its dialect. Optional operands may be
  /// absent. `results` are the types of the results where those do not follow
  /// from the operands. Operands of floats whose types the op does not take
  /// together are extended to the precision that formulas compute in.
  runtime::Expected<std::vector<Id>>
  applyOp(const std::string &op, const std::vector<std::optional<Id>> &operands,
          const Attributes &attributes,
          const std::vector<std::string> &results = {});

  Description describe(Id value) const;

  /// Ends the function, which returns `results`, and gives the text of a module
  /// with it. Results of formulas are rounded to the type of the first argument
  /// of floats that has at least 16 bits; arguments, results of ops and of
  /// `convert` keep their own types. Of a result that is to take the memory of
  /// an argument, `places` has the number of the argument.
  runtime::Expected<std::string>
  finish(const std::vector<Id> &results,
         const std::vector<std::optional<unsigned>> &places = {});

private:
  class Implementation;
  std::unique_ptr<Implementation> implementation;
};

} // namespace bastile

#endif // BASTILE_GRAPHBUILDER_H
