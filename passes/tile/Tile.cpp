//===- Tile.cpp - Apply a kernel's schedule -------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "dialect/KernelSpace.h"
#include "dialect/space/SpaceBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/TargetLookup.h"
#include "passes/crossed/CrossedProgram.h"
#include "passes/crossed/JoinPrograms.h"
#include "passes/products/ProductProgram.h"
#include "passes/products/ProgramOperands.h"
#include "passes/roles/SpecializedProgram.h"
#include "passes/schedule/KernelSchedule.h"
#include "passes/schedule/ThreadGrid.h"
#include "passes/tile/RowsProgram.h"
#include "llvm/ADT/MapVector.h"

namespace bastile {
#define GEN_PASS_DEF_TILE
#include "passes/Passes.h.inc"
} // namespace bastile

using namespace mlir;
using namespace bastile;

namespace {

struct TilePass : public bastile::impl::TileBase<TilePass> {
  using TileBase::TileBase;

  void runOnOperation() override {
    const Target *target = lookupTarget(getOperation(), this->target);
    if (!target)
      return signalPassFailure();
    if (failed(completeSpaces(getOperation())))
      return signalPassFailure();
    SymbolTable symbols(getOperation());
    // Kernels are erased, which a walk over them would not survive.
    llvm::MapVector<tile::KernelOp, SmallVector<tile::LaunchOp, 1>> launches;
    getOperation().walk([&](tile::LaunchOp launch) {
      if (tile::KernelOp kernel = getKernel(launch, symbols))
        launches[kernel].push_back(launch);
    });
    for (auto &[kernel, own] : launches)
      if (failed(verifyKernel(kernel, *target)))
        return signalPassFailure();
    if (!target->isHost())
      for (auto func : getOperation().getOps<func::FuncOp>())
        for (const CrossedKernels &crossed : findCrossedKernels(
                 func, symbols, [&](const CrossedKernels &found) {
                   return isJoined(found, *target);
                 })) {
          launches.erase(crossed.overRows);
          launches.erase(crossed.overColumns);
          repeatInputs(crossed.overRowsLaunch, crossed.overRows);
          repeatInputs(crossed.overColumnsLaunch, crossed.overColumns);
          if (failed(verifyFits(joinCrossedKernels(crossed, symbols), *target)))
            return signalPassFailure();
        }
    for (auto &[kernel, own] : launches)
      if (failed(tileKernel(kernel, own, symbols, *target)))
        return signalPassFailure();
  }

  /// The kernel that `launch` runs, unless it runs programs.
  static tile::KernelOp getKernel(tile::LaunchOp launch,
                                  const SymbolTable &symbols) {
    return symbols.lookup<tile::KernelOp>(launch.getFirstName());
  }

  /// Whether one program has what `crossed` compute, and another one that of
  /// operands which boxes do not take.
  static bool isJoined(const CrossedKernels &crossed, const Target &target) {
    auto getSchedule = [](tile::KernelOp kernel) {
      return dyn_cast<tile::MatmulAttr>(*kernel.getSchedule());
    };
    auto countUnalignedThreads = [](tile::KernelOp kernel) {
      return cast<tile::MatmulAttr>(*kernel.getUnalignedSchedule())
          .getThreads();
    };
    return returnsSums(crossed) &&
           fitsCrossedProgram(crossed, getSchedule(crossed.overRows),
                              getSchedule(crossed.overColumns), target) &&
           countUnalignedThreads(crossed.overRows) ==
               countUnalignedThreads(crossed.overColumns);
  }

  /// Checks the schedules of `kernel`.
  LogicalResult verifyKernel(tile::KernelOp kernel, const Target &target) {
    if (failed(verifyIsScheduled(kernel)))
      return failure();
    AnalysisManager analyses = getAnalysisManager().nest(kernel);
    for (tile::ScheduleInterface schedule : getSchedules(kernel))
      if (failed(cast<KernelScheduleInterface>(schedule).verifyFor(
              kernel, target, analyses)))
        return failure();
    return isOverDimensions(kernel) ? verifyVariants(kernel) : success();
  }

  /// Replaces `kernel`, which `launches` run, by its programs.
  LogicalResult tileKernel(tile::KernelOp kernel,
                           ArrayRef<tile::LaunchOp> launches,
                           SymbolTable &symbols, const Target &target) {
    if (isOverDimensions(kernel))
      return tileProduct(kernel, launches, symbols, target);
    AnalysisManager analyses = getAnalysisManager().nest(kernel);
    const auto &space = analyses.getAnalysis<KernelSpace, tile::KernelOp>();
    const auto &shape = analyses.getAnalysis<KernelShape, tile::KernelOp>();
    SmallVector<tile::ProgramOp> programs;
    for (TileVariant &variant : getVariants(kernel, shape, target.isHost())) {
      if (!target.isHost())
        variant.grid = *ThreadGrid::get(variant.schedule);
      programs.push_back(buildRowsProgram(kernel, space, shape, variant));
    }
    replaceKernel(kernel, launches, programs, symbols);
    return success();
  }

  /// Checks which schedules of `kernel`, over m, n and k, go with which: where
  /// warps have roles, another program takes the operands that copies of boxes
  /// do not, and others may take few rows.
  static LogicalResult verifyVariants(tile::KernelOp kernel) {
    const bool hasRoles =
        cast<tile::MatmulAttr>(*kernel.getSchedule()).isSpecialized();
    auto unaligned =
        cast_or_null<tile::MatmulAttr>(kernel.getUnalignedScheduleAttr());
    if (hasRoles && !unaligned)
      return kernel.emitError(
          "has no schedule for misaligned operands, which warps with roles "
          "cannot read; run the 'schedule' pass, or add an "
          "'unaligned_schedule'");
    if (unaligned && unaligned.isSpecialized())
      return kernel.emitError("schedule ")
             << unaligned << " is for misaligned operands, which warps with "
             << "roles cannot read; leave 'roles' out of it";
    ArrayAttr few = kernel.getFewRowsSchedulesAttr();
    if (!few)
      return success();
    for (auto own : few.getAsRange<tile::MatmulAttr>())
      if (!own.isSpecialized())
        return kernel.emitError("schedule ")
               << own << " is for few rows, where warps have roles; use "
               << "'roles = 2', or leave it out of 'few_rows_schedules'";
    if (!hasRoles)
      return kernel.emitError("has schedules for few rows, but its warps have "
                              "no roles; add 'roles = 2' to its schedule, or "
                              "leave out 'few_rows_schedules'");
    return success();
  }

  static LogicalResult tileProduct(tile::KernelOp kernel,
                                   ArrayRef<tile::LaunchOp> launches,
                                   SymbolTable &symbols, const Target &target) {
    for (tile::LaunchOp launch : launches)
      repeatInputs(launch, kernel);
    SmallVector<tile::ProgramOp> programs = buildVariants(kernel, target);
    if (failed(verifyFits(programs, target)))
      return failure();
    replaceKernel(kernel, launches, programs, symbols);
    return success();
  }

  /// Checks that blocks have the memory that `programs` of products take: what
  /// follows a product decides how much that is.
  static LogicalResult verifyFits(ArrayRef<tile::ProgramOp> programs,
                                  const Target &target) {
    for (tile::ProgramOp program : programs)
      if (const int64_t bytes = program.getAllSharedBytes(),
          most = target.maxSharedBytesPerBlock;
          bytes > most)
        return program.emitError("schedule ")
               << program.getSchedule() << " does not fit " << target.name
               << ": " << bytes << " bytes of the tile are more than the "
               << most
               << " of a block's shared memory; use fewer 'rows' or 'columns'";
    return success();
  }

  /// An operand that has two parts in `kernel`, such as both factors, becomes
  /// another input of `launch` for each part but the first.
  static void repeatInputs(tile::LaunchOp launch, tile::KernelOp kernel) {
    SmallVector<Value> inputs(launch.getInputs());
    const KernelSpace space(kernel);
    for (BlockArgument argument : ProgramOperands(kernel, space).getRepeated())
      inputs.push_back(launch.getInputs()[argument.getArgNumber()]);
    launch.getInputsMutable().assign(inputs);
  }

  /// The programs of a kernel over m, n and k, the fastest first.
  static SmallVector<tile::ProgramOp> buildVariants(tile::KernelOp kernel,
                                                    const Target &target) {
    const auto schedule = cast<tile::MatmulAttr>(*kernel.getSchedule());
    const std::string name = kernel.getSymName().str();
    if (!schedule.isSpecialized())
      return {buildProductProgram(kernel, schedule, name, target.isHost())};
    // Copies of boxes do not take every operand, nor every driver the products.
    const auto other = cast<tile::MatmulAttr>(*kernel.getUnalignedSchedule());
    SmallVector<tile::ProgramOp> programs{
        buildSpecializedProgram(kernel, schedule, name)};
    // Those for more rows come first, for calls that have them.
    if (ArrayAttr few = kernel.getFewRowsSchedulesAttr())
      for (auto [most, own] :
           llvm::reverse(llvm::zip_equal(*kernel.getFewRows(), few))) {
        Builder builder(kernel.getContext());
        programs.back().setLeastAttr(builder.getDictionaryAttr(
            builder.getNamedAttr("m", builder.getI64IntegerAttr(most + 1))));
        programs.push_back(buildSpecializedProgram(
            kernel, cast<tile::MatmulAttr>(own),
            name + "_" + std::to_string(most) + "_rows", most));
      }
    programs.push_back(buildProductProgram(kernel, other, name + "_unaligned",
                                           target.isHost()));
    return programs;
  }

  /// Makes `launches` run `programs`, variants of each other, in place of
  /// `kernel`.
  static void replaceKernel(tile::KernelOp kernel,
                            ArrayRef<tile::LaunchOp> launches,
                            ArrayRef<tile::ProgramOp> programs,
                            SymbolTable &symbols) {
    symbols.erase(kernel);
    SmallVector<Attribute> names;
    for (tile::ProgramOp program : programs) {
      symbols.insert(program);
      names.push_back(FlatSymbolRefAttr::get(program.getSymNameAttr()));
    }
    for (tile::LaunchOp launch : launches)
      launch.setKernelsAttr(ArrayAttr::get(launch.getContext(), names));
  }

  /// Whether some operand's rows serve several of another's or of a result's.
  static bool repeatsRows(tile::SpaceAttr space) {
    SmallVector<ArrayRef<Attribute>> rows;
    auto add = [&](ArrayAttr projection) {
      if (projection.size() > 1)
        rows.push_back(projection.getValue().drop_back());
    };
    for (unsigned index = 0; index < space.getArguments().size(); ++index)
      add(cast<ArrayAttr>(space.getOfArgument(index).front()));
    for (unsigned index = 0; index < space.getResults().size(); ++index)
      add(space.getOfResult(index));
    auto goesAlong = llvm::IsaPred<StringAttr>;
    return llvm::any_of(rows, [&](ArrayRef<Attribute> own) {
      return own.size() > 1 &&
             llvm::any_of(llvm::zip(own, rows.front()), [&](auto places) {
               auto [lhs, rhs] = places;
               return goesAlong(lhs) != goesAlong(rhs);
             });
    });
  }

  /// The variants of a kernel, the fastest first. On the host, accesses cost
  /// the same whatever their alignment.
  static SmallVector<TileVariant>
  getVariants(tile::KernelOp kernel, const KernelShape &shape, bool onHost) {
    std::string name = kernel.getSymName().str();
    int64_t leading = shape.leading;
    auto schedule = cast<tile::RowsAttr>(*kernel.getSchedule());
    auto unaligned =
        cast_or_null<tile::RowsAttr>(kernel.getUnalignedScheduleAttr());
    bool vectorized = !onHost && schedule.getVector() > 1;
    bool isMisaligned = shape.isMisaligned(schedule.getVector());
    bool isAligned = vectorized && !isMisaligned;
    SmallVector<TileVariant> variants;
    // Leading dimensions do not merge where rows are repeated, whose strides
    // differ from those of other rows, or where rows are combined over some of
    // the dimensions.
    bool merges =
        !repeatsRows(*kernel.getSpace()) && shape.combinedDimensions.empty();
    if (leading <= 1 || merges)
      variants.push_back({name,
                          std::min<int64_t>(leading, 1),
                          isAligned,
                          onHost,
                          schedule,
                          {}});
    // Where dimensions do not merge, rows seldom all have the same
    // misalignment.
    if (leading > 1 && !(isMisaligned && merges)) {
      if (merges)
        name += "_strided";
      variants.push_back({name, leading, isAligned, onHost, schedule, {}});
    }
    if (vectorized)
      variants.push_back({name + "_unaligned",
                          leading,
                          false,
                          onHost,
                          unaligned ? unaligned : schedule,
                          {}});
    return variants;
  }
};

} // namespace
