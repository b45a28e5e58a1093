//===- ProgramOp.cpp - Programs, and what marks their operands ------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/TensorView.h"
#include "dialect/ElementBytes.h"
#include "dialect/LaunchedOps.h"
#include "dialect/OperandMemory.h"
#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bastile::tile;

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

/// What divides the address of all that the code declares, in bytes.
static constexpr int64_t kScratchAlignment = 16;

int64_t ProgramOp::getSharedAlignment() {
  auto result = walk([&](BufferOp buffer) {
    const bool isSwizzled =
        isa<SharedAttr>(cast<MemRefType>(buffer.getType()).getMemorySpace());
    return isSwizzled ? WalkResult::interrupt() : WalkResult::advance();
  });
  return result.wasInterrupted() ? kSwizzleAlignment : kScratchAlignment;
}

int64_t ProgramOp::getAllSharedBytes() {
  constexpr int64_t barrierBytes = 8;
  uint64_t declared = 0;
  walk([&](Operation *op) {
    int64_t bytes = 0;
    if (auto barriers = dyn_cast<MakeBarriersOp>(op))
      bytes = barriers.getType().getCount() * barrierBytes;
    else if (auto numbers = dyn_cast<MakeNumbersOp>(op))
      bytes = cast<MemRefType>(numbers.getType()).getNumElements() *
              getElementBytes(numbers.getType());
    declared += llvm::alignTo(bytes, kScratchAlignment);
  });
  return static_cast<int64_t>(llvm::alignTo(declared, getSharedAlignment())) +
         getSharedBytes();
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
