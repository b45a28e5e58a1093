//===- KernelOps.cpp - Kernels and programs -------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/TensorView.h"
#include "dialect/ElementBytes.h"
#include "dialect/KernelSpace.h"
#include "dialect/OperandMemory.h"
#include "dialect/RowLength.h"
#include "dialect/Tile.h"
#include "dialect/space/SpaceBuilder.h"
#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bastile::tile;

//===----------------------------------------------------------------------===//
// What kernels and programs have in common
//===----------------------------------------------------------------------===//

template <typename Op>
static ParseResult parseLaunched(OpAsmParser &parser, OperationState &result) {
  auto buildType = [](Builder &builder, ArrayRef<Type> arguments,
                      ArrayRef<Type> results,
                      function_interface_impl::VariadicFlag, std::string &) {
    return builder.getFunctionType(arguments, results);
  };
  return function_interface_impl::parseFunctionOp(
      parser, result, /*allowVariadic=*/false,
      Op::getFunctionTypeAttrName(result.name), buildType,
      Op::getArgAttrsAttrName(result.name),
      Op::getResAttrsAttrName(result.name));
}

template <typename Op>
static void printLaunched(OpAsmPrinter &printer, Op op) {
  function_interface_impl::printFunctionOp(
      printer, op, /*isVariadic=*/false, op.getFunctionTypeAttrName(),
      op.getArgAttrsAttrName(), op.getResAttrsAttrName());
}

/// Checks that operands in memory have elements of whole bytes, and rows.
static LogicalResult verifyElements(Operation *op, TypeRange types,
                                    StringRef what) {
  for (auto [index, type] : llvm::enumerate(types)) {
    Type element = getElementTypeOrSelf(type);
    if (isa<ShapedType>(type) && !element.isIntOrFloat())
      return op->emitOpError(what)
             << " " << index << " of type " << type
             << " has neither integers nor floats as elements";
    auto tensor = dyn_cast<TensorType>(type);
    // A row vector has no rows whose length a call could tell.
    auto isRow = [](ArrayRef<int64_t> shape) {
      return (shape.size() > 1 && ShapedType::isDynamic(shape.back())) ||
             (shape.back() > 0 && shape.back() <= bastile::maxRowLength);
    };
    if (tensor && (!tensor.hasRank() || tensor.getRank() == 0 ||
                   !isRow(tensor.getShape())))
      return op->emitOpError(what)
             << " " << index << " of type " << type
             << " has no row length from 1 to " << bastile::maxRowLength;
    if (isa<ShapedType>(type) && element.getIntOrFloatBitWidth() % 8 != 0)
      return op->emitOpError(what)
             << " " << index << " of type " << type
             << " cannot lie in memory, where elements have whole bytes; "
                "compute it in the kernels that need it";
  }
  return success();
}

namespace {

/// An attribute of this dialect that an argument or a result may have.
struct KnownAttribute {
  StringRef name;
  /// The least value of a number; none for an attribute that has no value.
  std::optional<int64_t> least;
  /// Whether the value is checked elsewhere.
  bool isOther = false;
};

} // namespace

/// Checks those of `attributes` that have this dialect's prefix: each is one of
/// `known`, so that a misspelled one does not go unnoticed. `what` and `index`
/// name the argument or result of `op` that has them.
static LogicalResult verifyAttributes(Operation *op, StringRef what,
                                      unsigned index, DictionaryAttr attributes,
                                      ArrayRef<KnownAttribute> known) {
  if (!attributes)
    return success();
  for (NamedAttribute attribute : attributes) {
    StringRef name = attribute.getName();
    if (!name.starts_with("tile."))
      continue;
    auto error = [&, index = index] {
      return op->emitOpError(what) << " " << index << " has ";
    };
    const auto *found = llvm::find_if(
        known, [&](const KnownAttribute &one) { return one.name == name; });
    if (found == known.end())
      return error() << "the unknown attribute '" << name << "'";
    if (found->isOther)
      continue;
    if (!found->least) {
      if (!isa<UnitAttr>(attribute.getValue()))
        return error() << "'" << name << "' " << attribute.getValue()
                       << ", which takes no value";
      continue;
    }
    // In a narrower type, a large number's first digit would be taken for its
    // sign.
    auto number = dyn_cast<IntegerAttr>(attribute.getValue());
    if (!number ||
        !(number.getType().isIndex() || number.getType().isInteger(64)) ||
        number.getValue().slt(*found->least))
      return error() << "'" << name << "' " << attribute.getValue()
                     << ", which is not an i64 of at least " << *found->least;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// KernelOp
//===----------------------------------------------------------------------===//

void KernelOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                     FunctionType type) {
  auto &properties = state.getOrAddProperties<Properties>();
  properties.sym_name = builder.getStringAttr(name);
  properties.function_type = TypeAttr::get(type);
  state.addRegion();
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseLaunched<KernelOp>(parser, result);
}

void KernelOp::print(OpAsmPrinter &printer) { printLaunched(printer, *this); }

/// Checks the operands of `kernel` that give their place in memory to a result:
/// the result must have the same type.
static LogicalResult verifyInPlace(KernelOp kernel) {
  StringRef name = TileDialect::kInPlaceAttrName;
  for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    Attribute attribute = kernel.getArgAttr(index, name);
    auto result = dyn_cast_or_null<IntegerAttr>(attribute);
    auto isResult = [&, type = type] {
      return result && result.getValue().ult(kernel.getNumResults()) &&
             kernel.getResultTypes()[result.getInt()] == type;
    };
    if (attribute && !isResult())
      return kernel.emitOpError("argument ")
             << index << " has '" << name << "' " << attribute
             << ", which is the number of no result of type " << type;
  }
  return success();
}

LogicalResult KernelOp::verify() {
  if (getBody().empty())
    return emitOpError("has no body");
  if (!getBody().hasOneBlock())
    return emitOpError("has a body of ")
           << getBody().getBlocks().size()
           << " blocks; a kernel is one block of ops on whole tensors";
  if (failed(verifyElements(*this, getArgumentTypes(), "argument")) ||
      failed(verifyElements(*this, getResultTypes(), "result")))
    return failure();
  const KnownAttribute ofArguments[] = {
      {TileDialect::kInPlaceAttrName, /*least=*/0},
      {TileDialect::kFactorAttrName, std::nullopt},
      {TileDialect::kAboveAttrName, std::nullopt, /*isOther=*/true}};
  for (auto [index, type] : llvm::enumerate(getArgumentTypes())) {
    if (!isa<RankedTensorType>(type))
      return emitOpError("argument ")
             << index << " of type " << type
             << " is no tensor; a 'tile.program' has operands in memory";
    if (failed(verifyAttributes(*this, "argument", index, getArgAttrDict(index),
                                ofArguments)))
      return failure();
    Attribute above = getArgAttr(index, TileDialect::kAboveAttrName);
    if (above && !isa<FloatAttr>(above))
      return emitOpError("argument ")
             << index << " has '" << TileDialect::kAboveAttrName << "' "
             << above << ", which is no float";
  }
  const KnownAttribute ofResults[] = {
      {TileDialect::kApproximateAttrName, std::nullopt}};
  for (unsigned index = 0; index < getNumResults(); ++index)
    if (failed(verifyAttributes(*this, "result", index,
                                getResultAttrDict(index), ofResults)))
      return failure();
  for (auto reduce : getBody().front().getOps<ReduceRowsOp>())
    if (reduce.getPartial() &&
        (!reduce->hasOneUse() || !isa<ReturnOp>(*reduce->user_begin())))
      return reduce.emitOpError("is a partial result, which its kernel has to "
                                "return once and use for nothing else");
  if (failed(verifyInPlace(*this)))
    return failure();
  for (BlockArgument argument : getArguments()) {
    auto isOfBands = [](OpOperand &use) {
      return isa<RepeatBandsOp>(use.getOwner()) && use.getOperandNumber() == 0;
    };
    if (llvm::any_of(argument.getUses(), isOfBands) &&
        !llvm::all_of(argument.getUses(), isOfBands))
      return emitOpError("argument ")
             << argument.getArgNumber()
             << " has a row for each band, so it cannot be read for each row";
  }
  return success();
}

/// Each schedule for few rows is for more rows than the one before.
static LogicalResult verifyFewRows(KernelOp kernel) {
  const ArrayRef<int64_t> most =
      kernel.getFewRows().value_or(ArrayRef<int64_t>());
  const ArrayAttr schedules = kernel.getFewRowsSchedulesAttr();
  if (const size_t count = schedules ? schedules.size() : 0;
      most.size() != count)
    return kernel.emitOpError("has ")
           << most.size() << " numbers in 'few_rows', but " << count
           << " in 'few_rows_schedules'; give each schedule the rows that it "
              "serves at most";
  int64_t before = 0;
  for (int64_t rows : most) {
    if (rows <= before)
      return kernel.emitOpError("has ")
             << rows << " in 'few_rows' behind " << before
             << "; each number has to be larger than the one before";
    before = rows;
  }
  if (schedules && !llvm::all_of(schedules, llvm::IsaPred<MatmulAttr>))
    return kernel.emitOpError("has 'few_rows_schedules' ")
           << schedules << ", but only products have such; use '#tile.matmul'";
  return success();
}

LogicalResult KernelOp::verifyRegions() {
  if (failed(verifyFewRows(*this)))
    return failure();
  for (auto reduce : getBody().front().getOps<ReduceRowsOp>())
    if (reduce.keepsRows() && reduce.getCombinedDimensions().empty())
      return reduce.emitOpError("combines rows over dimensions of size 1 "
                                "alone, which changes nothing; leave it out");
  // The rows that are combined to one come after each other.
  auto combinesSome = [](ReduceRowsOp reduce) { return reduce.keepsRows(); };
  for (auto iota : getBody().front().getOps<IotaOp>())
    if (iota.getOver() &&
        llvm::any_of(getBody().front().getOps<ReduceRowsOp>(), combinesSome))
      return iota.emitOpError("numbers rows in a kernel that combines some of "
                              "them, which goes through them in another order; "
                              "number them in a kernel of its own");
  return bastile::verifySpace(*this);
}

//===----------------------------------------------------------------------===//
// ProgramOp
//===----------------------------------------------------------------------===//

void ProgramOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                      FunctionType type, int64_t leading,
                      ScheduleInterface schedule) {
  auto &properties = state.getOrAddProperties<Properties>();
  properties.sym_name = builder.getStringAttr(name);
  properties.function_type = TypeAttr::get(type);
  properties.leading = builder.getI64IntegerAttr(leading);
  properties.schedule = schedule;
  state.addRegion();
}

int64_t ProgramOp::getSharedBytes() {
  int64_t bytes = 0;
  walk([&](BufferOp buffer) {
    bytes = std::max(bytes, buffer.getEnd(getSchedule().getBlocks()));
  });
  return bytes;
}

ParseResult ProgramOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseLaunched<ProgramOp>(parser, result);
}

void ProgramOp::print(OpAsmPrinter &printer) { printLaunched(printer, *this); }

/// Checks the attributes of the arguments of `program`.
static LogicalResult verifyArguments(ProgramOp program) {
  const KnownAttribute known[] = {
      {ProgramOp::kReadOnlyAttrName, std::nullopt},
      {ProgramOp::kAlignmentAttrName, /*least=*/1},
      {ProgramOp::kPhaseAttrName, /*least=*/1},
      {ProgramOp::kPartialAttrName, std::nullopt},
      {ProgramOp::kBandAttrName, /*least=*/1},
      {ProgramOp::kSpaceAttrName, /*least=*/0},
      {ProgramOp::kDimensionsAttrName, std::nullopt, /*isOther=*/true},
      {ProgramOp::kCountersAttrName, std::nullopt, /*isOther=*/true},
      {TileDialect::kApproximateAttrName, std::nullopt}};
  // LLVM knows no greater one.
  constexpr int64_t mostAlignment = int64_t(1) << 32;
  int64_t spaces = program.getSpaces();
  for (unsigned index = 0; index < program.getNumArguments(); ++index) {
    if (failed(verifyAttributes(program, "argument", index,
                                program.getArgAttrDict(index), known)))
      return failure();
    if (program.getArgCounters(index) && !program.getDimensions())
      return program.emitOpError("has counters without named dimensions");
    if (int64_t alignment = program.getArgAlignment(index);
        !llvm::isPowerOf2_64(alignment) || alignment > mostAlignment)
      return program.emitOpError("argument ")
             << index << " has an alignment of " << alignment
             << " bytes, which is no power of two up to " << mostAlignment;
    if (int64_t space = program.getArgSpace(index); space >= spaces)
      return program.emitOpError("argument ")
             << index << " is of row space " << space << ", but there are "
             << spaces;
  }
  return success();
}

/// Checks that the rows of operand `index` of `program`, which lies in memory
/// as `memory`, are contiguous and have strides between them.
static LogicalResult verifyStrides(ProgramOp program, unsigned index,
                                   MemRefType memory) {
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  bool fits = memory.getRank() > 0 &&
              succeeded(memory.getStridesAndOffset(strides, offset)) &&
              strides.back() == 1 && offset == 0 &&
              (memory.getRank() == 1) == memory.getLayout().isIdentity();
  if (fits)
    return success();
  return program.emitOpError("argument ")
         << index << " of type " << memory
         << " must be 'strided', without an offset and with a last stride of "
            "1, or have one dimension and no layout";
}

/// Checks that `parts` give lengths of parts of dimensions of `program`.
static LogicalResult verifyParts(ProgramOp program, DictionaryAttr parts,
                                 StringRef what) {
  for (NamedAttribute part : parts) {
    auto length = dyn_cast<IntegerAttr>(part.getValue());
    if (!program.getSize(part.getName()) || !length || length.getInt() < 1)
      return program.emitOpError("has ")
             << what << " for each " << part.getValue() << " of dimension "
             << part.getName() << ", which is no length of a dimension";
  }
  return success();
}

/// Checks operand `index` of `program`, which has counters.
static LogicalResult verifyCounters(ProgramOp program, unsigned index) {
  Type type = program.getArgumentTypes()[index];
  DictionaryAttr parts = program.getArgCounters(index);
  if (!parts || parts.empty() || program.getArgDimensions(index) ||
      type != MemRefType::get(ShapedType::kDynamic,
                              IntegerType::get(program.getContext(), 32)))
    return program.emitOpError("argument ")
           << index << " of type " << type
           << " has counters, which are a 'memref<?xi32>' with lengths of "
              "parts of dimensions and without 'tile.dimensions'";
  return verifyParts(program, parts, "counters");
}

/// Checks that each operand in memory of `program`, which has named dimensions,
/// says which of them are its own.
static LogicalResult verifyOperandDimensions(ProgramOp program) {
  auto operands = program.getArgumentTypes().drop_front(program.getNumSizes());
  // Once they are lowered to addresses, nothing is left to check.
  if (llvm::any_of(operands, llvm::IsaPred<LLVM::LLVMPointerType>))
    return success();
  for (unsigned index = program.getNumSizes();
       index < program.getNumArguments(); ++index) {
    Type type = program.getArgumentTypes()[index];
    MemRefType memory = getMemoryType(type);
    if (!memory)
      return program.emitOpError("argument ")
             << index << " of type " << type << " is no operand in memory";
    if (program.getArgAttr(index, ProgramOp::kCountersAttrName)) {
      if (failed(verifyCounters(program, index)))
        return failure();
      continue;
    }
    ArrayAttr dimensions = program.getArgDimensions(index);
    auto fail = [&, index = index] {
      return program.emitOpError("argument ") << index << " ";
    };
    if (failed(verifyStrides(program, index, memory)))
      return failure();
    if (!dimensions ||
        dimensions.size() != static_cast<size_t>(memory.getRank()))
      return fail() << "of type " << memory << " needs '"
                    << ProgramOp::kDimensionsAttrName
                    << "' with a name or a size for each dimension";
    for (auto [size, dimension] :
         llvm::zip_equal(memory.getShape(), dimensions)) {
      auto name = dyn_cast<StringAttr>(dimension);
      auto number = dyn_cast<IntegerAttr>(dimension);
      if (name && !program.getSize(name))
        return fail() << "has dimension " << name
                      << ", which the program does not have";
      if (!name && (!number || number.getInt() != size))
        return fail() << "has dimension " << dimension << " of " << memory
                      << ", which is neither a name nor the static size";
    }
  }
  return success();
}

/// Checks for which alignments `program` has more variants.
static LogicalResult verifyAlignments(ProgramOp program) {
  std::optional<ArrayRef<int64_t>> alignments = program.getAlignments();
  if (!alignments)
    return success();
  int64_t before = 0;
  for (unsigned index = program.getNumSizes();
       index < program.getNumArguments(); ++index) {
    before = std::max(before, program.getArgAlignment(index));
    if (isa<TensorMapType>(program.getArgumentTypes()[index]))
      return program.emitOpError("has variants for 'alignments', but argument ")
             << index << " is copied in boxes, whose alignment is always 16";
  }
  for (int64_t alignment : *alignments) {
    if (alignment < 1 || !llvm::isPowerOf2_64(alignment) || alignment >= before)
      return program.emitOpError("has a variant for an alignment of ")
             << alignment << ", which is no power of two below the " << before
             << " of the variant before";
    before = alignment;
  }
  return success();
}

/// Checks `program`, which has named dimensions.
static LogicalResult verifyDimensions(ProgramOp program) {
  if (program.getLeading() != 0 || program.getSpaces() != 1)
    return program.emitOpError(
        "has named dimensions, so it has no leading dimensions nor row spaces");
  if (!program.getSchedule().isComplete())
    return program.emitOpError("has schedule ")
           << program.getSchedule() << ", which leaves fields to be chosen";
  if (static_cast<size_t>(program.getNumSizes()) > program.getNumArguments())
    return program.emitOpError("has ")
           << program.getNumSizes() << " dimensions but only "
           << program.getNumArguments() << " arguments";
  for (BlockArgument size :
       program.getArguments().take_front(program.getNumSizes()))
    if (!size.getType().isIndex())
      return program.emitOpError("argument ")
             << size.getArgNumber()
             << " is the size of a dimension and must be an index, not "
             << size.getType();
  const ArrayAttr names = *program.getDimensions();
  DenseSet<Attribute> known;
  for (Attribute name : names)
    if (!known.insert(name).second)
      return program.emitOpError("has two dimensions ") << name;
  std::optional<DictionaryAttr> parts = program.getPrograms();
  if (!parts)
    return program.emitOpError("has named dimensions, so 'programs' must say "
                               "into which parts they are cut");
  if (failed(verifyParts(program, *parts, "a program")))
    return failure();
  if (std::optional<DictionaryAttr> least = program.getLeast();
      least && failed(verifyParts(program, *least, "calls")))
    return failure();
  return failure(failed(verifyOperandDimensions(program)) ||
                 failed(verifyAlignments(program)));
}

/// Checks which sizes `program` takes as they are ahead of merging.
static LogicalResult verifyUnmergedSizes(ProgramOp program) {
  std::optional<ArrayRef<int64_t>> dimensions = program.getUnmergedSizes();
  if (!dimensions)
    return success();
  constexpr int64_t most = bastile::runtime::maxRank - 1;
  int64_t least = 0;
  for (int64_t dimension : *dimensions) {
    if (dimension < least || dimension >= most)
      return program.emitOpError("takes the size of dimension ")
             << dimension
             << " ahead of merging, which does not ascend below the " << most
             << " leading ones that there may be";
    least = dimension + 1;
  }
  if (program.getNumSizes() > static_cast<int64_t>(program.getNumArguments()))
    return program.emitOpError("takes ")
           << program.getNumSizes() << " sizes but has only "
           << program.getNumArguments() << " arguments";
  return success();
}

LogicalResult ProgramOp::verify() {
  if (getBody().empty())
    return emitOpError("has no body");
  if (failed(verifyElements(*this, getArgumentTypes(), "argument")))
    return failure();
  if (getNumResults() != 0)
    return emitOpError(
        "must return nothing: its results are operands in memory");
  if (getDimensions())
    return failure(failed(verifyDimensions(*this)) ||
                   failed(verifyArguments(*this)));
  if (!getLeadingAttr())
    return emitOpError("requires attribute 'leading'");
  if (getAlignments())
    return emitOpError("has 'alignments', which are for programs over named "
                       "dimensions");
  if (!isa<RowsAttr>(getSchedule()))
    return emitOpError(
               "goes through rows, whose schedule is a #tile.rows, not ")
           << getSchedule();
  if (!getSchedule().isComplete())
    return emitOpError("has schedule ")
           << getSchedule()
           << ", which leaves fields to be chosen; 'rows', 'threads', 'vector' "
              "and 'columns' must be given";
  int64_t leading = getLeading(), spaces = getSpaces();
  if (spaces < 1)
    return emitOpError("has ")
           << spaces << " row spaces; a program has one or more";
  if (leading < 0 || leading > getNumArguments() / spaces) {
    InFlightDiagnostic error = emitOpError("has ")
                               << leading << " leading dimensions";
    if (spaces > 1)
      error << " in each of " << spaces << " row spaces";
    return error << " but only " << getNumArguments() << " arguments";
  }
  if (failed(verifyUnmergedSizes(*this)))
    return failure();
  for (BlockArgument size : getArguments().take_front(getNumSizes()))
    if (!size.getType().isIndex())
      return emitOpError("argument ")
             << size.getArgNumber()
             << " is the size of a leading dimension and must be an index, not "
             << size.getType();
  if (failed(verifyArguments(*this)))
    return failure();
  auto verifyPositive = [&](std::optional<int64_t> number,
                            StringAttr name) -> LogicalResult {
    if (!number || *number >= 1)
      return success();
    return emitOpError("has '")
           << name.getValue() << "' " << *number << ", which must be 1 or more";
  };
  if (failed(verifyPositive(getColumnBlocks(), getColumnBlocksAttrName())) ||
      failed(verifyPositive(getRowPrograms(), getRowProgramsAttrName())) ||
      failed(verifyPositive(getBand(), getBandAttrName())))
    return failure();
  if (std::optional<ArrayRef<int64_t>> combines = getCombines()) {
    if (spaces != 2)
      return emitOpError("combines rows, which takes two row spaces, but has ")
             << spaces;
    for (auto [index, dimension] : llvm::enumerate(*combines))
      if (dimension < (index ? (*combines)[index - 1] + 1 : 0) ||
          dimension >= leading)
        return emitOpError("combines rows over dimension ")
               << dimension << ", which does not ascend below the " << leading
               << " leading ones";
  }
  return success();
}

/// The number that the argument of `program` at `position` has as attribute
/// `name`.
static std::optional<int64_t> getArgNumber(ProgramOp program, unsigned position,
                                           StringRef name) {
  auto number = program.getArgAttrOfType<IntegerAttr>(position, name);
  return number ? std::optional(number.getInt()) : std::nullopt;
}

int64_t ProgramOp::getArgAlignment(unsigned position) {
  return getArgNumber(*this, position, kAlignmentAttrName).value_or(1);
}

std::optional<int64_t> ProgramOp::getArgPhase(unsigned position) {
  return getArgNumber(*this, position, kPhaseAttrName);
}

std::optional<int64_t> ProgramOp::getArgBand(unsigned position) {
  return getArgNumber(*this, position, kBandAttrName);
}

int64_t ProgramOp::getArgSpace(unsigned position) {
  return getArgNumber(*this, position, kSpaceAttrName).value_or(0);
}

ArrayAttr ProgramOp::getArgDimensions(unsigned position) {
  return getArgAttrOfType<ArrayAttr>(position, kDimensionsAttrName);
}

DictionaryAttr ProgramOp::getArgCounters(unsigned position) {
  return getArgAttrOfType<DictionaryAttr>(position, kCountersAttrName);
}

Value ProgramOp::getUnmergedSize(int64_t dimension) {
  ArrayRef<int64_t> dimensions = *getUnmergedSizes();
  const auto *it = llvm::find(dimensions, dimension);
  assert(it != dimensions.end() && "the program does not take this size");
  return getArgument(getSpaces() * getLeading() +
                     std::distance(dimensions.begin(), it));
}

Value ProgramOp::getSize(StringRef name) {
  if (std::optional<ArrayAttr> names = getDimensions())
    for (auto [index, dimension] : llvm::enumerate(*names))
      if (cast<StringAttr>(dimension).getValue() == name)
        return getArgument(index);
  return {};
}
