//===- DimensionOrder.h - Dimensions in another order -----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_LAUNCH_DIMENSIONORDER_H
#define BASTILE_RUNTIME_LAUNCH_DIMENSIONORDER_H

#include "bastile/runtime/TensorView.h"

#include <utility>

namespace bastile::runtime {

/// Appends `dimension` to `order`, and moves it ahead of the dimensions at the
/// end for which `goesAhead` holds. It takes no memory from the heap, as
/// sorting might.
template <typename Predicate>
void insert(Dimensions &order, unsigned dimension, Predicate goesAhead) {
  order.push_back(dimension);
  for (unsigned place = order.size() - 1;
       place != 0 && goesAhead(static_cast<unsigned>(order[place - 1]));
       --place)
    std::swap(order[place - 1], order[place]);
}

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_LAUNCH_DIMENSIONORDER_H
