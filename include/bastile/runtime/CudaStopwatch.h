//===- CudaStopwatch.h - Time on a GPU --------------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_CUDASTOPWATCH_H
#define BASTILE_RUNTIME_CUDASTOPWATCH_H

#include "bastile/runtime/CudaDevice.h"

#include <vector>

namespace bastile::runtime {

/// Measures laps of work in a stream of a device, as the device passes their
/// ends.
class CudaStopwatch {
public:
  explicit CudaStopwatch(const CudaDevice &device,
                         cuda::Stream stream = nullptr)
      : driver(device.driver()), stream(stream), scope(device) {}
  ~CudaStopwatch();
  CudaStopwatch(const CudaStopwatch &) = delete;
  CudaStopwatch &operator=(const CudaStopwatch &) = delete;

  /// Makes room for `count` laps.
  Error reserve(unsigned count);

  Error start(unsigned lap) { return record(laps[lap].begin); }
  Error stop(unsigned lap) { return record(laps[lap].end); }

  /// The seconds of lap `lap`; waits until the device has passed its end.
  Expected<double> seconds(unsigned lap) const;

private:
  struct Lap {
    cuda::Event begin = nullptr, end = nullptr;
  };

  Error record(cuda::Event event) const {
    return driver.check(driver.eventRecord(event, stream), "record an event");
  }

  const CudaDriver &driver;
  cuda::Stream stream;
  CudaContextScope scope;
  std::vector<Lap> laps;
};

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_CUDASTOPWATCH_H
