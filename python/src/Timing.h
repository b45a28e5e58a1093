//===- Timing.h - Measurements for the tuner --------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PYTHON_TIMING_H
#define BASTILE_PYTHON_TIMING_H

#include <pybind11/pybind11.h>

namespace bastile::python {

/// Adds what the tuner measures with, after programs are bound.
void bindTiming(pybind11::module_ &module);

} // namespace bastile::python

#endif // BASTILE_PYTHON_TIMING_H
