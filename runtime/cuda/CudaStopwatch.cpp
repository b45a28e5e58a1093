//===- CudaStopwatch.cpp - Time on a GPU ----------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/CudaStopwatch.h"

using namespace bastile::runtime;

CudaStopwatch::~CudaStopwatch() {
  for (const Lap &lap : laps)
    for (cuda::Event event : {lap.begin, lap.end})
      if (event)
        driver.eventDestroy(event);
}

Error CudaStopwatch::reserve(unsigned count) {
  if (Error error = scope.takeError())
    return error;
  while (laps.size() < count) {
    laps.emplace_back();
    for (cuda::Event *event : {&laps.back().begin, &laps.back().end})
      if (Error error = driver.check(driver.eventCreate(event, /*flags=*/0),
                                     "create an event"))
        return error;
  }
  return Error::success();
}

Expected<double> CudaStopwatch::seconds(unsigned lap) const {
  if (Error error = driver.check(driver.eventSynchronize(laps[lap].end),
                                 "wait for the GPU"))
    return error;
  float milliseconds = 0;
  if (Error error =
          driver.check(driver.eventElapsedTime(&milliseconds, laps[lap].begin,
                                               laps[lap].end),
                       "read the time of the GPU"))
    return error;
  return milliseconds / 1e3;
}
