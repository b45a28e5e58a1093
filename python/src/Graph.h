//===- Graph.h - Functions built by tracing Python's ------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PYTHON_GRAPH_H
#define BASTILE_PYTHON_GRAPH_H

#include <pybind11/pybind11.h>

namespace bastile::python {

/// Adds the class Graph to the extension module.
void bindGraph(pybind11::module_ &module);

} // namespace bastile::python

#endif // BASTILE_PYTHON_GRAPH_H
