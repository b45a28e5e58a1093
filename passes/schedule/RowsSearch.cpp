//===- RowsSearch.cpp - The schedules worth timing of kernels on rows -----===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Varies the fields of the heuristic's schedule one or a few at a time, and
// drops schedules that a model of registers, occupancy and bytes in flight
// calls slow.
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/RowsModel.h"
#include "passes/schedule/ScheduleFields.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bastile;

namespace {

/// Collects the schedules of one kernel.
class Enumerator {
public:
  Enumerator(tile::KernelOp kernel, const Target &target)
      : context(kernel.getContext()), target(target), probe(kernel, target),
        model(probe.getAnalysis<KernelShape>(), target) {}

  /// The heuristic's choice, then the others, those expected to be fastest
  /// first.
  SmallVector<tile::RowsAttr> run();

  /// How many schedules are worth timing. A kernel that combines partial
  /// results is short, so little can be gained on it.
  size_t getMost() const {
    constexpr size_t most = 24, mostOfShort = 8;
    return model.shape().numCombinedRows > 0 ? mostOfShort : most;
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
  SmallVector<tile::RowsAttr> rank();
  /// The heuristic's choice, and the first of the ranked ones.
  SmallVector<tile::RowsAttr> getRanked();
  SmallVector<tile::RowsAttr> getFirst(size_t most);
  tile::RowsAttr complete(const ScheduleFields &fields);
  void add(const ScheduleFields &fields);

  MLIRContext *context;
  const Target &target;
  ScheduleProbe probe;
  RowsModel model;
  llvm::SetVector<tile::RowsAttr> found;
};

} // namespace

/// The numbers of threads that are tried: from small blocks, several of which
/// share a multiprocessor, to the largest.
static constexpr int64_t kThreads[] = {64,  128, 192, 256, 320, 384,
                                       448, 512, 640, 768, 896, 1024};

tile::RowsAttr Enumerator::complete(const ScheduleFields &fields) {
  auto open = cast<KernelScheduleInterface>(fields.getAttr(context));
  tile::ScheduleInterface schedule = probe.complete(open);
  if (!schedule)
    return nullptr;
  // Schedules are spelled in one way, so that equal ones compare equal.
  ScheduleFields completed(cast<tile::RowsAttr>(schedule));
  completed.cluster = completed.getBlocks();
  completed.stages = completed.getStages();
  return completed.getAttr(context);
}

void Enumerator::add(const ScheduleFields &fields) {
  if (tile::RowsAttr schedule = complete(fields))
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

SmallVector<tile::RowsAttr> Enumerator::getRanked() {
  SmallVector<tile::RowsAttr> schedules = rank();
  schedules.insert(schedules.begin(), found.front());
  return schedules;
}

SmallVector<tile::RowsAttr> Enumerator::getFirst(size_t most) {
  SmallVector<tile::RowsAttr> schedules = getRanked();
  schedules.truncate(std::min(most, schedules.size()));
  return schedules;
}

/// Tries more or fewer rows in a tile, and programs on a multiprocessor.
void Enumerator::addVariations() {
  for (tile::RowsAttr schedule : getFirst(16)) {
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
  for (tile::RowsAttr schedule : getFirst(4))
    for (int64_t stages : {1, 2, 3, 4}) {
      ScheduleFields fields(schedule);
      fields.stages = stages;
      if (fields.persistent > 0)
        add(fields);
    }
}

/// How many fields differ between two schedules, and by how many doublings.
static double getDistance(tile::RowsAttr lhs, tile::RowsAttr rhs) {
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

SmallVector<tile::RowsAttr> Enumerator::rank() {
  tile::RowsAttr choice = found.front();
  RowsEstimate chosen = model.estimate(choice);
  SmallVector<std::pair<double, tile::RowsAttr>> rated;
  for (tile::RowsAttr schedule : llvm::drop_begin(found)) {
    RowsEstimate estimate = model.estimate(schedule);
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
  SmallVector<tile::RowsAttr> ranked;
  for (auto &[time, schedule] : rated)
    if (counts[{schedule.getThreads(), schedule.getVector(),
                schedule.getBlocks()}]++ < kMostOfBlock)
      ranked.push_back(schedule);
  return ranked;
}

SmallVector<tile::RowsAttr> Enumerator::run() {
  tile::RowsAttr choice = complete(ScheduleFields());
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

ScheduleCandidates bastile::getRowsCandidates(tile::KernelOp kernel,
                                              const Target &target) {
  Enumerator enumerator(kernel, target);
  return {llvm::to_vector_of<tile::ScheduleInterface>(enumerator.run()),
          enumerator.getMost()};
}
