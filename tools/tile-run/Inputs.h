//===- Inputs.h - The inputs that a function is called on -------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TOOLS_TILERUN_INPUTS_H
#define BASTILE_TOOLS_TILERUN_INPUTS_H

#include "Tensor.h"
#include "bastile/runtime/Error.h"
#include "bastile/runtime/Metadata.h"
#include "bastile/runtime/Npy.h"
#include <map>
#include <optional>
#include <string>

namespace bastile::run {

/// Values given on the command line as name=value.
using NamedValues = std::map<std::string, std::string>;

/// Arrays in files, each read once.
class ArrayFiles {
public:
  /// The array in the file `path`, whose elements are of one of `types`.
  runtime::Expected<const runtime::NpyArray *>
  load(const std::string &path, const std::vector<runtime::ElementType> &types);

private:
  std::map<std::string, runtime::NpyArray> arrays;
};

struct InputOptions {
  /// Files, shapes and ranges of integers, by the names of the inputs.
  NamedValues files, shapes, ranges;
  /// The number of rows; by default what the files say, or 8192.
  std::optional<int64_t> rows;
  uint64_t seed = 0;
  Placement placement;
};

/// Loads or makes the inputs of `function`.
///
/// Sizes that are known only at launch are those of the input's file or given
/// shape, or else those of another input of the same rank that has one.
/// Otherwise the last such size of all inputs of the same rank is the number of
/// rows, and the others are 1. A number of rows that is given is that of every
/// input, and of a file with more rows, the first ones are taken.
///
/// Where launches name dimensions, inputs with the same name have the same
/// size, and the first dimension of a launch is that of the rows.
///
/// Without a file, floats are normal random numbers, and integers are evenly
/// distributed over their range, by default 0 and 1.
runtime::Expected<std::vector<Tensor>>
makeInputs(const runtime::Function &function, const InputOptions &options,
           ArrayFiles &files);

/// Whether some kernel needs an input or output without gaps, as it is given no
/// strides for it.
bool needsNoGaps(const runtime::Function &function, runtime::Operand::Kind kind,
                 unsigned index);

/// Sets `tensor` to the elements of `array`, read from `file`: all of them, or
/// the first ones along the outermost dimension.
runtime::Error setLeadingElements(Tensor &tensor,
                                  const runtime::NpyArray &array,
                                  const std::string &file);

/// Splits each "name=value". Fails on any other form and on names given twice.
runtime::Expected<NamedValues>
parseNamedValues(const std::vector<std::string> &arguments,
                 const std::string &option);

} // namespace bastile::run

#endif // BASTILE_TOOLS_TILERUN_INPUTS_H
