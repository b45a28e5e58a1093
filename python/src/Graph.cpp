//===- Graph.cpp - Functions built by tracing Python's --------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Graph.h"

#include "bastile/GraphBuilder.h"

#include <pybind11/stl.h>

namespace py = pybind11;
using namespace bastile;
using namespace bastile::python;
using namespace py::literals;

using Id = GraphBuilder::Id;

/// The value, or ValueError with the error's message.
template <typename T>
static T take(runtime::Expected<T> value) {
  if (!value)
    throw py::value_error(value.takeError().message());
  return std::move(*value);
}

/// (sizes of the example, which of them are fixed, element type).
static py::tuple describe(const GraphBuilder &graph, Id value) {
  GraphBuilder::Description description = graph.describe(value);
  return py::make_tuple(std::move(description.sizes),
                        std::move(description.isFixed),
                        std::move(description.element));
}

void bastile::python::bindGraph(py::module_ &module) {
  py::class_<GraphBuilder>(module, "Graph")
      .def(py::init<const std::string &>(), "name"_a)
      .def(
          "argument",
          [](GraphBuilder &graph, const std::string &name,
             const std::string &type, const std::vector<int64_t> &sizes) {
            return take(graph.addArgument(name, type, sizes));
          },
          "name"_a, "type"_a, "sizes"_a)
      .def("number", &GraphBuilder::addNumber, "number"_a)
      .def("integer", &GraphBuilder::addInteger, "number"_a)
      .def(
          "apply",
          [](GraphBuilder &graph, const std::string &function,
             const std::vector<Id> &operands) {
            return take(graph.apply(function, operands));
          },
          "function"_a, "operands"_a)
      .def(
          "reduce",
          [](GraphBuilder &graph, const std::string &function, Id operand,
             int64_t groups) {
            return take(graph.reduce(function, operand, groups));
          },
          "function"_a, "operand"_a, "groups"_a = 1)
      .def(
          "number_columns",
          [](GraphBuilder &graph, Id like) {
            return take(graph.numberColumns(like));
          },
          "like"_a)
      .def(
          "iota",
          [](GraphBuilder &graph, Id like,
             const std::vector<int64_t> &dimensions) {
            return take(graph.iota(like, dimensions));
          },
          "like"_a, "dimensions"_a)
      .def(
          "expand_as",
          [](GraphBuilder &graph, Id operand, Id like) {
            return take(graph.expandAs(operand, like));
          },
          "operand"_a, "like"_a)
      .def(
          "repeat_columns",
          [](GraphBuilder &graph, Id operand, int64_t count) {
            return take(graph.repeatColumns(operand, count));
          },
          "operand"_a, "count"_a)
      .def(
          "multiply",
          [](GraphBuilder &graph, Id a, Id b, int64_t contractA,
             int64_t contractB) {
            return take(graph.multiply(a, b, contractA, contractB));
          },
          "a"_a, "b"_a, "contract_a"_a, "contract_b"_a)
      .def("find_free_sizes", &GraphBuilder::findFreeSizes, "values"_a)
      .def("find_free_columns", &GraphBuilder::findFreeColumns, "value"_a,
           "contract"_a)
      .def(
          "convert",
          [](GraphBuilder &graph, Id operand, const std::string &element) {
            return take(graph.convert(operand, element));
          },
          "operand"_a, "element"_a)
      .def(
          "split",
          [](GraphBuilder &graph, Id operand, int64_t count, bool interleaved) {
            return take(graph.split(operand, count, interleaved));
          },
          "operand"_a, "count"_a, "interleaved"_a)
      .def(
          "join",
          [](GraphBuilder &graph, const std::vector<Id> &pieces,
             bool interleaved) {
            return take(graph.join(pieces, interleaved));
          },
          "pieces"_a, "interleaved"_a)
      .def(
          "apply_op",
          [](GraphBuilder &graph, const std::string &op,
             const std::vector<std::optional<Id>> &operands,
             const GraphBuilder::Attributes &attributes,
             const std::vector<std::string> &results) {
            return take(graph.applyOp(op, operands, attributes, results));
          },
          "op"_a, "operands"_a, "attributes"_a, "results"_a)
      .def("describe", &describe, "value"_a)
      .def(
          "finish",
          [](GraphBuilder &graph, const std::vector<Id> &results,
             const std::vector<std::optional<unsigned>> &places) {
            return take(graph.finish(results, places));
          },
          "results"_a, "places"_a = std::vector<std::optional<unsigned>>());
}
