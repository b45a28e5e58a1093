//===- Features.cpp - Variants that a machine can run ---------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/launch/Features.h"
#include "bastile/runtime/LaunchPlan.h"
#include "runtime/Text.h"

using namespace bastile::runtime;

bool bastile::runtime::hasFeatures(const Variant &variant,
                                   const Capacity &capacity,
                                   std::string *reason) {
  for (Feature feature : variant.needs) {
    if (capacity.has(feature))
      continue;
    if (reason)
      *reason = concat("'", variant.entry, "' needs ", name(feature), ", ",
                       capacity.explainLack(feature));
    return false;
  }
  return true;
}

const Variant *bastile::runtime::findVariant(const Launch &launch,
                                             const Capacity &capacity) {
  for (const Variant &variant : launch.variants)
    if (hasFeatures(variant, capacity, /*reason=*/nullptr))
      return &variant;
  return nullptr;
}

std::vector<std::string>
bastile::runtime::describeLeftOut(const Function &function,
                                  const Capacity &capacity) {
  std::vector<std::string> lines;
  for (const Launch &launch : function.launches)
    for (const Variant &variant : launch.variants) {
      std::string reason;
      if (!hasFeatures(variant, capacity, &reason))
        lines.push_back(concat("function '", function.name,
                               "': a variant of kernel '", launch.kernel,
                               "' is left out: ", reason));
    }
  return lines;
}
