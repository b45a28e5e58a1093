//===- Metadata.h - What a compiled file says of itself ---------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The schema is documented in docs/metadata.md. These structures mirror it; a
// document that parses is consistent: every index is in range.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_METADATA_H
#define BASTILE_RUNTIME_METADATA_H

#include "bastile/runtime/Capacity.h"
#include "bastile/runtime/ElementType.h"
#include "bastile/runtime/Error.h"
#include "bastile/runtime/Expression.h"
#include "bastile/runtime/TensorView.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bastile::runtime {

/// An input of a function; a size without a value is known only at launch.
struct InputSpec {
  std::string name;
  ElementType type = ElementType::F32;
  std::vector<std::optional<int64_t>> shape;
  /// Whether the last dimension may have any stride: all launches that use the
  /// input have a variant that takes this stride.
  bool strided = false;
};

/// An output or a temporary of a function.
struct BufferSpec {
  /// Empty for temporaries.
  std::string name;
  ElementType type = ElementType::F32;
  std::vector<Expression> shape;
  /// For temporaries: the runtime fills the buffer with zeros before the
  /// launches.
  bool zeroed = false;
  /// For outputs, in documents older than `Launch::combines`: the buffer is
  /// filled with zeros when a launch that would write it is skipped because
  /// there is nothing to compute.
  bool zeroIfNoRows = false;
  /// For outputs: the input whose memory the output may take.
  std::optional<unsigned> mayAlias;
  /// For outputs: whether the last dimension may have any stride, as
  /// `InputSpec::strided`.
  bool strided = false;
};

/// A tensor that a launch reads or writes, named by its place in the function.
struct Operand {
  enum class Kind : uint8_t { Input, Output, Temporary, Piece };
  Kind kind = Kind::Input;
  unsigned index = 0;
  /// Whether the operand has rows of its own; otherwise all rows share it.
  bool rows = false;
  /// The row space of the launch to which its rows belong.
  unsigned space = 0;
  /// How many rows of row space 0 share one of the operand's rows; 0 for none.
  int64_t band = 0;
};

/// A piece of an input, an output or a temporary, in the memory of which it
/// lies: one of `count` pieces of equal length along `dimension`.
struct PieceSpec {
  Operand whole;
  unsigned dimension = 0;
  int64_t index = 0, count = 2;
  /// Whether it has every `count`-th element from `index` on, and not those
  /// that follow each other.
  bool interleaved = false;
};

/// What a dimension of an operand is in a launch over named dimensions.
struct MappedDimension {
  /// The dimension of the launch; nothing for one that has always `size`.
  std::optional<unsigned> dimension;
  int64_t size = 0;
};

/// One parameter of an entry: a value of 8 bytes, or a tensor map.
struct Argument {
  enum class Kind : uint8_t { Size, UnmergedSize, Pointer, Stride, TensorMap };
  Kind kind = Kind::Size;
  unsigned operand = 0;
  /// For sizes, the dimension of the launch, ahead of merging for an unmerged
  /// size; for strides over rows, too, and over named dimensions the dimension
  /// of the operand.
  unsigned dimension = 0;
  /// The row space whose size it is.
  unsigned space = 0;
  /// Which of the variant's tensor maps it is.
  unsigned map = 0;
};

/// A tensor map among the arguments of a variant.
struct TensorMapArgument {
  unsigned operand = 0;
  /// The sizes of what one copy moves, in the order of the operand's
  /// dimensions.
  Dimensions box;
  /// Bytes of a row of shared memory that is swizzled as a whole; 0 for none.
  int64_t swizzle = 0;
};

/// One program of a kernel, for operands of some alignment and strides.
struct Variant {
  std::string entry;
  /// For a launch over rows: the leading dimensions that the kernel goes
  /// through.
  unsigned leading = 0;
  /// The alignment of each operand of the launch: a power of two, in bytes.
  std::vector<int64_t> alignment;
  /// The phase of each operand of the launch: a power of two, in elements; 1
  /// for an operand that may begin anywhere.
  std::vector<int64_t> phase;
  std::vector<Argument> arguments;
  std::vector<TensorMapArgument> tensorMaps;
  /// For a launch over named dimensions: for each operand a bit for each
  /// dimension whose stride is the product of the sizes behind it, as the
  /// kernel takes the operand's address and not this stride.
  std::vector<uint8_t> packed;
  /// For the same: the least sizes of dimensions, by their numbers, of calls
  /// that the variant is for.
  std::vector<std::pair<unsigned, int64_t>> least;
  /// What the machine must have.
  std::vector<Feature> needs;
  Expression grid;
  int64_t block = 1;
  int64_t cluster = 1;
  int64_t sharedMemory = 0;
  /// How many registers the compiler expects of the assembler; for reports
  /// only.
  std::optional<int64_t> maxRegisters;
  std::optional<int64_t> staticSharedMemory;
};

struct Launch {
  /// Whether the kernel combines all rows of row space 0, so that it writes a
  /// result even where there are no rows.
  bool combinesAll() const { return leading > 0 && combines.size() == leading; }

  /// Whether the kernel goes through named dimensions and not through rows.
  bool hasDimensions() const { return dimensions.has_value(); }

  std::string kernel;
  std::vector<Operand> operands;
  /// The names of the dimensions; nothing for a launch over rows, which the
  /// fields from `leading` to `spaces` describe.
  std::optional<std::vector<std::string>> dimensions;
  /// For a launch over named dimensions: what the dimensions of each operand
  /// are.
  std::vector<std::vector<MappedDimension>> maps;
  unsigned leading = 0;
  /// The leading dimensions over which the kernel combines the rows of row
  /// space 0, in ascending order.
  std::vector<unsigned> combines;
  /// Whether the kernel computes the same if it goes through the leading
  /// dimensions in another order.
  bool anyOrder = false;
  /// How many row spaces share the launch.
  unsigned spaces = 1;
  /// The variants, fastest first.
  std::vector<Variant> variants;
  bool overlapNext = false;
};

/// How the gradients of a function are computed.
struct Backward {
  /// A tensor of the forward call, or one that belongs to the backward.
  struct Source {
    enum class Kind : uint8_t {
      /// The gradient of output `index` of the forward.
      Gradient,
      /// Input or output `index` of the forward call.
      Input,
      Output,
      /// Output `index` of the function that computes gradients.
      Result,
    };
    Kind kind = Kind::Gradient;
    unsigned index = 0;
  };

  /// The function that computes gradients; empty if there is nothing to
  /// compute.
  std::string function;
  /// The inputs of that function, in order.
  std::vector<Source> inputs;
  /// The gradient of each input of the forward, if it has one.
  std::vector<std::optional<Source>> gradients;
};

struct Function {
  /// Whether `operand` has size 1 in dimension `dimension` in every call. A
  /// launch whose other operands have another size there repeats its rows.
  bool isAlwaysOne(const Operand &operand, unsigned dimension) const;
  size_t rank(const Operand &operand) const;
  /// What lies in memory by itself: `operand`, or what it is a piece of.
  const Operand &whole(const Operand &operand) const {
    return operand.kind == Operand::Kind::Piece ? pieces[operand.index].whole
                                                : operand;
  }
  ElementType type(const Operand &operand) const;
  /// The size that `operand` has in dimension `dimension` in every call;
  /// nothing if it may differ.
  std::optional<int64_t> fixedSize(const Operand &operand,
                                   unsigned dimension) const;

  std::string name;
  std::vector<InputSpec> inputs;
  std::vector<BufferSpec> outputs;
  std::vector<BufferSpec> temporaries;
  std::vector<PieceSpec> pieces;
  std::vector<Launch> launches;
  /// Absent where no gradients were asked for.
  std::optional<Backward> backward;
};

struct Metadata {
  /// The function called `name`, or null.
  const Function *find(std::string_view name) const;

  std::string compiler;
  std::string target;
  std::vector<Function> functions;
};

/// Reads a JSON document, or the one in the comment block of a PTX text. An
/// error names the field at fault.
Expected<Metadata> parseMetadata(std::string_view text);

/// Reads the metadata of the compiled file `path`: of the file itself if it is
/// PTX or JSON (by its suffix), of `<path>.json` otherwise.
Expected<Metadata> loadMetadata(const std::string &path);

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_METADATA_H
