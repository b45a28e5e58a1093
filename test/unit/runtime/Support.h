//===- Support.h - Helpers of the runtime's tests ---------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TEST_UNIT_RUNTIME_SUPPORT_H
#define BASTILE_TEST_UNIT_RUNTIME_SUPPORT_H

#include "bastile/runtime/LaunchPlan.h"
#include "bastile/runtime/Metadata.h"
#include "bastile/runtime/Shapes.h"

#include <gtest/gtest.h>

#include <string>

namespace bastile::runtime {

/// Asserts that `error` is success and shows its message if not.
#define ASSERT_OK(error)                                                       \
  do {                                                                         \
    ::bastile::runtime::Error asserted = (error);                              \
    ASSERT_FALSE(asserted) << asserted.message();                              \
  } while (false)

#define EXPECT_OK(error)                                                       \
  do {                                                                         \
    ::bastile::runtime::Error expected = (error);                              \
    EXPECT_FALSE(expected) << expected.message();                              \
  } while (false)

/// Expects a failure whose message contains `part`.
inline void expectError(Error error, const std::string &part) {
  ASSERT_TRUE(error) << "expected a failure that says: " << part;
  EXPECT_NE(error.message().find(part), std::string::npos) << error.message();
}

/// A document around the given functions, a list of JSON objects.
inline std::string document(const std::string &functions) {
  return R"({"schema": "bastile.kernels", "version": 1,
             "compiler": "bastile 0.1.0", "target": "sm_90",
             "functions": [)" +
         functions + "]}";
}

/// The only function of `json`, which must be well-formed.
inline Function parseFunction(const std::string &json) {
  Expected<Metadata> metadata = parseMetadata(document(json));
  Error error = metadata.takeError();
  EXPECT_FALSE(error) << error.message();
  return error ? Function() : std::move(metadata->functions.front());
}

/// An address for views whose elements are never read.
inline void *fakeAddress(intptr_t address) {
  return reinterpret_cast<void *>(address);
}

} // namespace bastile::runtime

#endif // BASTILE_TEST_UNIT_RUNTIME_SUPPORT_H
