//===- Executor.cpp - Where planned launches run --------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/Executor.h"
#include "bastile/runtime/LaunchPlan.h"

using namespace bastile::runtime;

Executor::~Executor() = default;

/// Makes the tensor maps of `launch`, as far as those of the last call do not
/// serve again.
static Error makeMaps(PlannedLaunch &launch, Executor &executor) {
  for (PlannedTensorMap &map : launch.maps) {
    const bool isKept = map.made && map.device == executor.device() &&
                        map.made->isLike(map.spec);
    if (isKept && map.made->address == map.spec.address)
      continue;
    map.made.reset();
    if (Error error = isKept ? executor.replaceAddress(map.spec, map.encoded)
                             : executor.encode(map.spec, map.encoded))
      return error;
    map.made = map.spec;
    map.device = executor.device();
  }
  return Error::success();
}

Error bastile::runtime::execute(LaunchPlan &plan, Executor &executor) {
  for (const ZeroFill &fill : plan.zeroFills())
    if (Error error = executor.zero(fill.data, fill.bytes))
      return error;
  for (PlannedLaunch &launch : plan.launches()) {
    if (Error error = makeMaps(launch, executor))
      return error;
    if (Error error = executor.launch(launch.variant->entry, launch.config,
                                      launch.arguments.data()))
      return error;
  }
  return Error::success();
}
