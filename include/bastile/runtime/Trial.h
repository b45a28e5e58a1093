//===- Trial.h - Timing one function of several programs --------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Timing and comparison for a tuner: its programs are one source compiled with
// different schedules, so they compute the same, and the trial tells which is
// the fastest and whether one is wrong.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_TRIAL_H
#define BASTILE_RUNTIME_TRIAL_H

#include "bastile/runtime/Program.h"

namespace bastile::runtime {

/// A function on tensors of its own, with random numbers in them.
class Trial {
public:
  /// The trial of `function` of `reference`, whose first function's inputs have
  /// `sizes`. If `function` is the backward of that first function, its inputs
  /// are what the forward saves for it, and random gradients.
  static Expected<std::unique_ptr<Trial>>
  create(Program &reference, const std::string &function,
         const std::vector<Dimensions> &sizes, const Place &place);
  virtual ~Trial();

  /// The seconds of each of `repeat` calls. On a GPU it is the device's time,
  /// and no call finds its tensors in a cache.
  virtual Expected<std::vector<double>> time(Program &program,
                                             unsigned repeat) = 0;

  /// How far the results of `program` are from those of the reference, as a
  /// part of what rounding excuses: up to 1 they are equal, as far as a
  /// schedule may tell. Of a large tensor, only parts are compared.
  virtual Expected<double> compare(Program &program) = 0;
};

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_TRIAL_H
