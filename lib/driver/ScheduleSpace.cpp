//===- ScheduleSpace.cpp - The schedules worth timing ---------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/ScheduleSpace.h"
#include "dialect/Dimensions.h"
#include "lib/driver/ScheduleModel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Passes.h"
#include "passes/schedule/ScheduleFields.h"
#include "passes/schedule/SchedulePins.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bastile;
using tile::ScheduleAttr;

namespace {

/// Has the `schedule` pass complete and check schedules of one kernel.
class ScheduleProbe {
public:
  ScheduleProbe(tile::KernelOp kernel, const Target &target)
      : module(ModuleOp::create(kernel.getLoc())), passes(kernel.getContext()) {
    this->kernel = cast<tile::KernelOp>(kernel->clone());
    module->push_back(this->kernel);
    passes.enableVerifier(false);
    passes.addPass(createSchedule({target.name, /*schedule=*/""}));
  }

  /// The complete schedule with these fields; null if there is none.
  ScheduleAttr complete(const ScheduleFields &fields) {
    MLIRContext *context = kernel.getContext();
    // The rejection of a schedule is an answer here, not an error.
    ScopedDiagnosticHandler silence(context,
                                    [](Diagnostic &) { return success(); });
    kernel.setScheduleAttr(fields.getAttr(context));
    if (failed(passes.run(*module)))
      return nullptr;
    // Schedules are spelled in one way, so that equal ones compare equal.
    ScheduleFields completed(*kernel.getSchedule());
    completed.cluster = completed.getBlocks();
    completed.stages = completed.getStages();
    return completed.getAttr(context);
  }

private:
  OwningOpRef<ModuleOp> module;
  tile::KernelOp kernel;
  PassManager passes;
};

/// Collects the schedules of one kernel.
class Enumerator {
public:
  Enumerator(tile::KernelOp kernel, const Target &target)
      : target(target), model(kernel, target), probe(kernel, target) {}

  /// The heuristic's choice, then the others, those expected to be fastest
  /// first.
  SmallVector<ScheduleAttr> run();

  /// How many schedules are worth timing. A kernel that combines partial
  /// results is short, so little can be gained on it.
  size_t getMost() const {
    return model.shape().numCombinedRows > 0 ? 8 : kMostScheduleChoices;
  }

private:
  SmallVector<int64_t> getClusters() const;
  void addBlocks();
  void addLoops();
  void addVariations();
  void addStages();
  /// The schedules that the model does not rule out, without the heuristic's
  /// choice. The order is by the expected time and the distance from that
  /// choice.
  SmallVector<ScheduleAttr> rank();
  /// The heuristic's choice, and the first of the ranked ones.
  SmallVector<ScheduleAttr> getRanked();
  SmallVector<ScheduleAttr> getFirst(size_t most);
  void add(const ScheduleFields &fields);

  const Target &target;
  ScheduleModel model;
  ScheduleProbe probe;
  llvm::SetVector<ScheduleAttr> found;
};

} // namespace

/// The numbers of threads that are tried: from small blocks, several of which
/// share a multiprocessor, to the largest.
static constexpr int64_t kThreads[] = {64,  128, 192, 256, 320, 384,
                                       448, 512, 640, 768, 896, 1024};

void Enumerator::add(const ScheduleFields &fields) {
  if (ScheduleAttr schedule = probe.complete(fields))
    found.insert(schedule);
}

/// Clusters that may share a row, from a single block on.
SmallVector<int64_t> Enumerator::getClusters() const {
  SmallVector<int64_t> clusters{1};
  if (model.shape().numReductions > 0)
    while (clusters.back() * 2 <= target.maxBlocksPerCluster)
      clusters.push_back(clusters.back() * 2);
  return clusters;
}

/// Tries other blocks and clusters; the heuristic chooses the rest.
void Enumerator::addBlocks() {
  ScheduleFields chosen(found.front());
  for (int64_t vector = chosen.vector;
       vector >= std::max<int64_t>(1, chosen.vector / 2); vector /= 2)
    for (int64_t threads : kThreads)
      for (int64_t cluster : getClusters()) {
        ScheduleFields fields;
        fields.threads = threads;
        fields.vector = vector;
        fields.cluster = cluster;
        add(fields);
        // The heuristic's number of programs is made for its own blocks; here
        // one for each multiprocessor is tried.
        fields.persistent = 1;
        if (chosen.persistent > 0)
          add(fields);
      }
}

/// Tries tiles of several vectors for each thread, smaller than the row.
void Enumerator::addLoops() {
  ScheduleFields chosen(found.front());
  if (model.shape().numCombinedRows > 0)
    return;
  for (int64_t threads : kThreads)
    for (int64_t cluster : getClusters())
      for (int64_t held : {1, 2, 4, 8}) {
        ScheduleFields fields = chosen;
        fields.rows = 0;
        fields.threads = threads;
        fields.cluster = cluster;
        fields.columns = held * threads * fields.vector * cluster;
        if (fields.columns < model.shape().getSpan(fields.vector))
          add(fields);
      }
}

SmallVector<ScheduleAttr> Enumerator::getRanked() {
  SmallVector<ScheduleAttr> schedules = rank();
  schedules.insert(schedules.begin(), found.front());
  return schedules;
}

SmallVector<ScheduleAttr> Enumerator::getFirst(size_t most) {
  SmallVector<ScheduleAttr> schedules = getRanked();
  schedules.truncate(std::min(most, schedules.size()));
  return schedules;
}

/// Tries more or fewer rows in a tile, and programs on a multiprocessor.
void Enumerator::addVariations() {
  for (ScheduleAttr schedule : getFirst(16)) {
    ScheduleFields base(schedule);
    for (int64_t rows :
         {base.rows / 2, base.rows, base.rows * 2, base.rows * 4})
      for (int64_t persistent :
           {base.persistent, int64_t(1), int64_t(2), int64_t(3), int64_t(4),
            int64_t(6), int64_t(8)}) {
        ScheduleFields fields = base;
        fields.rows = rows;
        fields.persistent = persistent;
        if (rows > 0)
          add(fields);
      }
  }
}

/// Tries more or fewer stages: rows that are loaded ahead.
void Enumerator::addStages() {
  for (ScheduleAttr schedule : getFirst(4))
    for (int64_t stages : {1, 2, 3, 4}) {
      ScheduleFields fields(schedule);
      fields.stages = stages;
      if (fields.persistent > 0)
        add(fields);
    }
}

/// How many fields differ between two schedules, and by how many doublings.
static double getDistance(ScheduleAttr lhs, ScheduleAttr rhs) {
  double distance = 0;
  auto compare = [&](int64_t a, int64_t b) {
    if (a != b)
      distance += 1 + std::abs(std::log2((1.0 + a) / (1.0 + b))) / 4;
  };
  compare(lhs.getRows(), rhs.getRows());
  compare(lhs.getThreads(), rhs.getThreads());
  compare(lhs.getVector(), rhs.getVector());
  compare(lhs.getPersistent(), rhs.getPersistent());
  compare(lhs.getBlocks(), rhs.getBlocks());
  compare(lhs.getStages(), rhs.getStages());
  // The columns follow from the other fields unless a program goes through the
  // row in tiles.
  return distance;
}

SmallVector<ScheduleAttr> Enumerator::rank() {
  ScheduleAttr choice = found.front();
  ScheduleEstimate chosen = model.estimate(choice);
  SmallVector<std::pair<double, ScheduleAttr>> rated;
  for (ScheduleAttr schedule : llvm::drop_begin(found)) {
    ScheduleEstimate estimate = model.estimate(schedule);
    // Where a multiprocessor cannot hold all its programs, some wait for others
    // to end: a grid that is not persistent does better.
    if (schedule.getPersistent() > estimate.blocks ||
        model.rulesOut(estimate, chosen))
      continue;
    rated.push_back({model.getRelativeTime(estimate) *
                         (1 + 0.05 * getDistance(schedule, choice)),
                     schedule});
  }
  llvm::stable_sort(rated, llvm::less_first());
  // The rows can be dealt out in many ways to one kind of block; too many of
  // these would leave no room for other blocks.
  constexpr unsigned kMostOfBlock = 4;
  llvm::DenseMap<std::tuple<int64_t, int64_t, int64_t>, unsigned> counts;
  SmallVector<ScheduleAttr> ranked;
  for (auto &[time, schedule] : rated)
    if (counts[{schedule.getThreads(), schedule.getVector(),
                schedule.getBlocks()}]++ < kMostOfBlock)
      ranked.push_back(schedule);
  return ranked;
}

SmallVector<ScheduleAttr> Enumerator::run() {
  ScheduleAttr choice = probe.complete(ScheduleFields());
  if (!choice)
    return {};
  found.insert(choice);
  if (target.isHost())
    return {choice};
  addBlocks();
  addLoops();
  addVariations();
  addStages();
  return getRanked();
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// The search space of a launch, with the heuristic's choice alone.
static LaunchSpace makeSpace(func::FuncOp func, tile::ProgramOp program,
                             SmallVectorImpl<std::string> &kernels) {
  kernels.push_back(program.getSymName().str());
  if (std::optional<ArrayAttr> merged = program.getMerged())
    for (auto name : merged->getAsRange<StringAttr>())
      kernels.push_back(name.str());
  return {func.getSymName().str(), kernels.front(), {}};
}

/// Whether the passes after `schedule` take the kernels as they are pinned.
static bool isAccepted(ModuleOp fused, const CompileOptions &options,
                       const std::string &pins) {
  ScopedDiagnosticHandler silence(fused.getContext(),
                                  [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> copy = fused.clone();
  PassManager passes(fused.getContext());
  passes.addPass(createSchedule({options.target->name, pins}));
  passes.addPass(createTile({options.target->name}));
  passes.addPass(createMergeLaunches());
  return succeeded(passes.run(*copy));
}

FailureOr<std::vector<LaunchSpace>>
bastile::getScheduleSpaces(ModuleOp module, const CompileOptions &options) {
  OwningOpRef<ModuleOp> fused = module.clone();
  if (failed(lower(*fused, Level::Fused, options)))
    return failure();
  OwningOpRef<ModuleOp> tiled = module.clone();
  if (failed(lower(*tiled, Level::Tiled, options)))
    return failure();

  const Target &target = *options.target;
  SymbolTable fusedKernels(*fused), programs(*tiled);
  std::vector<LaunchSpace> spaces;
  for (auto func : tiled->getOps<func::FuncOp>())
    for (auto launch : func.getOps<tile::LaunchOp>()) {
      SmallVector<std::string> kernels;
      // The first variant has the name of the kernel.
      auto name = cast<FlatSymbolRefAttr>(launch.getKernels()[0]);
      LaunchSpace space = makeSpace(
          func, programs.lookup<tile::ProgramOp>(name.getValue()), kernels);
      auto kernel = fusedKernels.lookup<tile::KernelOp>(kernels.front());
      if (getDot(kernel)) {
        // Products have one schedule.
        auto own = programs.lookup<tile::ProgramOp>(name.getValue());
        space.choices.push_back({"", printFields(own.getSchedule())});
        spaces.push_back(std::move(space));
        continue;
      }
      Enumerator enumerator(kernel, target);
      for (ScheduleAttr schedule : enumerator.run()) {
        std::string fields = printFields(schedule), pins;
        bool isFirst = space.choices.empty();
        if (target.isHost() && !isFirst)
          break;
        if (!isFirst)
          for (const std::string &member : kernels)
            pins.append(pins.empty() ? "" : "; ")
                .append(member)
                .append(": ")
                .append(fields);
        if (!isFirst && !isAccepted(*fused, options, pins))
          continue;
        space.choices.push_back({std::move(pins), std::move(fields)});
        if (space.choices.size() == enumerator.getMost())
          break;
      }
      spaces.push_back(std::move(space));
    }
  return spaces;
}
