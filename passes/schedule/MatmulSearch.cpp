//===- MatmulSearch.cpp - The schedules worth timing of products ----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/MatmulRules.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace bastile;

namespace {

/// Collects the schedules of one kernel, by how many steps they are away from
/// the heuristic's choice.
class Neighbourhood {
public:
  Neighbourhood(tile::KernelOp kernel, const Target &target)
      : context(kernel.getContext()), probe(kernel, target) {}

  void add(const MatmulFields &fields);
  /// Adds what is one step away from `fields`.
  void addNeighbours(const MatmulFields &fields);

  llvm::SetVector<tile::ScheduleInterface> found;

private:
  MLIRContext *context;
  ScheduleProbe probe;
};

} // namespace

void Neighbourhood::add(const MatmulFields &fields) {
  auto schedule = cast<KernelScheduleInterface>(fields.getAttr(context));
  if (tile::ScheduleInterface complete = probe.complete(schedule))
    found.insert(complete);
}

void Neighbourhood::addNeighbours(const MatmulFields &fields) {
  using Field = int64_t MatmulFields::*;
  auto change = [&](Field field, int64_t value) {
    MatmulFields changed = fields;
    changed.*field = value;
    if (value > 0)
      add(changed);
    // Another tile may need other threads.
    if (field == &MatmulFields::rows || field == &MatmulFields::columns) {
      changed.threads = 0;
      if (value > 0)
        add(changed);
    }
  };
  for (Field field : {&MatmulFields::rows, &MatmulFields::columns,
                      &MatmulFields::threads, &MatmulFields::depth})
    for (int64_t value : {fields.*field * 2, fields.*field / 2})
      change(field, value);
  if (fields.roles) {
    // The other way has other fields.
    MatmulFields other;
    other.roles = fields.isSpecialized() ? 1 : 2;
    add(other);
  }
  if (fields.isSpecialized())
    for (int64_t cluster : {fields.cluster * 2, fields.cluster / 2})
      change(&MatmulFields::cluster, cluster);
  if (fields.split > 1)
    for (int64_t split : {fields.split * 2, fields.split / 2})
      change(&MatmulFields::split, split);
  if (fields.matrices > 1)
    for (int64_t matrices : {fields.matrices * 2, fields.matrices / 2})
      change(&MatmulFields::matrices, matrices);
  if (fields.isSpecialized())
    change(&MatmulFields::steps, fields.endsSteps() ? 2 : 1);
  if (fields.isStaged())
    for (int64_t stages : {fields.stages + 1, fields.stages - 1})
      change(&MatmulFields::stages, stages);
}

/// Orders schedules that are as far from the heuristic's choice: those come
/// first of which a program loads less for each multiplication, then those in
/// which more threads share its work. The other fields make the order whole.
static auto getOrder(const MatmulFields &fields) {
  return std::tuple(1.0 / fields.rows + 1.0 / fields.columns, -fields.threads,
                    -fields.rows, fields.depth, fields.stages, fields.vector,
                    -fields.roles, -fields.cluster, fields.split, fields.steps,
                    fields.resident, fields.matrices);
}

ScheduleCandidates bastile::getMatmulCandidates(tile::KernelOp kernel,
                                                const Target &target) {
  constexpr size_t most = 40;
  ScheduleCandidates candidates{{}, most};
  Neighbourhood neighbourhood(kernel, target);
  neighbourhood.add(MatmulFields());
  size_t begin = 0;
  while (begin < neighbourhood.found.size()) {
    // All that are as many steps away, in order.
    SmallVector<tile::ScheduleInterface> ring(
        llvm::drop_begin(neighbourhood.found, begin));
    begin = neighbourhood.found.size();
    auto getFields = [](tile::ScheduleInterface schedule) {
      return MatmulFields(cast<tile::MatmulAttr>(schedule));
    };
    llvm::sort(ring, [&](auto lhs, auto rhs) {
      return getOrder(getFields(lhs)) < getOrder(getFields(rhs));
    });
    candidates.schedules.append(ring);
    if (target.isHost() || candidates.schedules.size() >= 2 * most)
      break;
    for (tile::ScheduleInterface schedule : ring)
      neighbourhood.addNeighbours(getFields(schedule));
  }
  return candidates;
}
