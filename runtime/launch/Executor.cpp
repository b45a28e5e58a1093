//===- Executor.cpp - Where planned launches run --------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/Executor.h"
#include "bastile/runtime/LaunchPlan.h"

using namespace bastile::runtime;

Executor::~Executor() = default;

Error bastile::runtime::execute(LaunchPlan &plan, Executor &executor) {
  for (const ZeroFill &fill : plan.zeroFills())
    if (Error error = executor.zero(fill.data, fill.bytes))
      return error;
  for (PlannedLaunch &launch : plan.launches())
    if (Error error = executor.launch(launch.variant->entry, launch.config,
                                      launch.arguments.data()))
      return error;
  return Error::success();
}
