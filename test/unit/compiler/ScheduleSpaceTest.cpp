//===- ScheduleSpaceTest.cpp - The schedules worth timing -----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/ScheduleSpace.h"
#include "bastile/TextCompiler.h"
#include "gtest/gtest.h"

#include <map>
#include <set>

using namespace bastile;

namespace {

/// A norm and its backward, which sums rows.
CompileRequest makeNorm(const std::string &length) {
  const std::string rows = "tensor<?x" + length + "xbf16>";
  const std::string weight = "tensor<" + length + "xbf16>";
  CompileRequest request;
  request.source = "func.func @f(%x: " + rows + ", %w: " + weight + ") -> " +
                   rows + " {\n  %0 = tile.rms_norm %x, %w : " + rows + ", " +
                   weight + "\n  return %0 : " + rows + "\n}";
  request.target = "sm_90";
  request.gradients.arguments = {"all"};
  return request;
}

std::vector<LaunchCandidates> enumerate(const CompileRequest &request) {
  auto launches = enumerateSchedules(request);
  runtime::Error error = launches.takeError();
  EXPECT_FALSE(error) << error.message();
  return error ? std::vector<LaunchCandidates>() : std::move(*launches);
}

TEST(ScheduleSpaceTest, beginsWithTheHeuristicsChoice) {
  CompileRequest request = makeNorm("2880");
  auto reports = explainText(request, 1);
  std::map<std::string, std::string> chosen;
  for (const KernelReport &report : *reports)
    chosen[report.name] = report.schedule;
  std::vector<LaunchCandidates> launches = enumerate(request);
  ASSERT_EQ(launches.size(), chosen.size());
  for (const LaunchCandidates &launch : launches) {
    const ScheduleCandidate &first = launch.candidates.front();
    EXPECT_EQ(first.pins, "");
    // A cluster of one block is no cluster, and a single stage loads nothing
    // ahead, in either spelling.
    std::string fields = first.fields;
    for (const char *one : {", cluster = 1", ", stages = 1"})
      if (size_t at = fields.find(one); at != std::string::npos)
        fields.erase(at, std::string(one).size());
    EXPECT_EQ(fields, chosen[launch.kernel]);
  }
}

TEST(ScheduleSpaceTest, hasAHandfulOfDistinctSchedules) {
  for (const char *length : {"128", "2880", "16384", "65536"})
    for (const LaunchCandidates &launch : enumerate(makeNorm(length))) {
      EXPECT_GE(launch.candidates.size(), 6u) << launch.kernel << length;
      // What combines the rows that others left is short.
      EXPECT_LE(launch.candidates.size(), 24u);
      std::set<std::string> distinct;
      for (const ScheduleCandidate &candidate : launch.candidates)
        distinct.insert(candidate.fields);
      EXPECT_EQ(distinct.size(), launch.candidates.size());
    }
}

TEST(ScheduleSpaceTest, hasOnlySchedulesThatCompile) {
  CompileRequest request = makeNorm("2880");
  for (const LaunchCandidates &launch : enumerate(request))
    for (const ScheduleCandidate &candidate : launch.candidates) {
      request.schedule = candidate.pins;
      auto compiled = compileText(request);
      runtime::Error error = compiled.takeError();
      EXPECT_FALSE(error) << error.message();
      // The schedule is the one that was asked for.
      auto reports = explainText(request, 1);
      for (const KernelReport &report : *reports)
        if (report.name == launch.kernel && !candidate.pins.empty())
          EXPECT_EQ(report.schedule, candidate.fields);
    }
}

/// A product with a weight, of elements of this type.
CompileRequest makeProduct(const std::string &element) {
  const std::string rows = "tensor<?x2048x" + element + ">";
  const std::string weight = "tensor<1024x2048x" + element + ">";
  CompileRequest request;
  request.source =
      "func.func @f(%x: " + rows + ", %w: " + weight +
      ") -> tensor<?x1024xf32> {\n  %0 = tile.dot %x, %w contract "
      "[1, 1] : " +
      rows + ", " + weight +
      " -> tensor<?x1024xf32>\n  return %0 : tensor<?x1024xf32>\n}";
  request.target = "sm_90";
  return request;
}

/// The fields of the only launch of `request`, in order.
std::vector<std::string> enumerateFields(const CompileRequest &request) {
  std::vector<std::string> fields;
  std::vector<LaunchCandidates> launches = enumerate(request);
  EXPECT_EQ(launches.size(), 1u);
  for (const LaunchCandidates &launch : launches)
    for (const ScheduleCandidate &candidate : launch.candidates)
      fields.push_back(candidate.fields);
  return fields;
}

TEST(ScheduleSpaceTest, hasAtMostFortySchedulesOfAProduct) {
  for (const char *element : {"bf16", "f32"}) {
    std::vector<std::string> fields = enumerateFields(makeProduct(element));
    EXPECT_GE(fields.size(), 20u) << element;
    EXPECT_LE(fields.size(), 40u) << element;
    EXPECT_LE(fields.size(), kMostScheduleChoices);
    EXPECT_EQ(std::set<std::string>(fields.begin(), fields.end()).size(),
              fields.size());
  }
}

TEST(ScheduleSpaceTest, beginsWithTheNeighboursOfAProductsSchedule) {
  std::vector<std::string> fields = enumerateFields(makeProduct("bf16"));
  ASSERT_GE(fields.size(), 12u);
  EXPECT_EQ(fields[0], "rows = 128, columns = 128, depth = 32, threads = 128, "
                       "vector = 2, stages = 4");
  const std::set<std::string> next(fields.begin() + 1, fields.begin() + 12);
  for (const char *neighbour :
       {"rows = 256, columns = 128, depth = 32, threads = 256, vector = 2, "
        "stages = 4",
        "rows = 64, columns = 128, depth = 32, threads = 128, vector = 2, "
        "stages = 4",
        "rows = 128, columns = 64, depth = 32, threads = 128, vector = 2, "
        "stages = 4",
        "rows = 128, columns = 128, depth = 64, threads = 128, vector = 2, "
        "stages = 4",
        "rows = 128, columns = 128, depth = 32, threads = 256, vector = 2, "
        "stages = 4",
        "rows = 128, columns = 128, depth = 32, threads = 128, vector = 2, "
        "stages = 3"})
    EXPECT_TRUE(next.count(neighbour)) << neighbour;
}

TEST(ScheduleSpaceTest, hasOnlySchedulesOfProductsThatFitTheTarget) {
  CompileRequest request = makeProduct("bf16");
  // Blocks of these GPUs have 99 KiB of shared memory.
  request.target = "sm_120";
  for (const LaunchCandidates &launch : enumerate(request))
    for (const ScheduleCandidate &candidate : launch.candidates) {
      request.schedule = candidate.pins;
      auto compiled = compileText(request);
      runtime::Error error = compiled.takeError();
      EXPECT_FALSE(error) << candidate.fields << ": " << error.message();
      auto reports = explainText(request, 1);
      for (const KernelReport &report : *reports)
        EXPECT_EQ(report.schedule, candidate.fields);
    }
}

TEST(ScheduleSpaceTest, variesHowFarAheadRowsAreLoaded) {
  std::set<std::string> stages;
  for (const LaunchCandidates &launch : enumerate(makeNorm("2880")))
    for (const ScheduleCandidate &candidate : launch.candidates)
      for (const char *field : {"stages = 1", "stages = 2", "stages = 3"})
        if (llvm::StringRef(candidate.fields).contains(field))
          stages.insert(field);
  EXPECT_EQ(stages.size(), 3u);
}

TEST(ScheduleSpaceTest, namesTheFunctionOfALaunch) {
  std::vector<LaunchCandidates> launches = enumerate(makeNorm("2880"));
  ASSERT_GE(launches.size(), 2u);
  EXPECT_EQ(launches[0].function, "f");
  EXPECT_EQ(launches[1].function, "f_backward");
}

TEST(ScheduleSpaceTest, pinsMergedKernelsTogether) {
  CompileRequest request;
  request.source = R"(
func.func @f(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>,
             %cos: tensor<1x?x1x64xf32>, %sin: tensor<1x?x1x64xf32>)
    -> (tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>) {
  %0 = tile.rope %q, %cos, %sin
      : tensor<?x?x?x128xbf16>, tensor<1x?x1x64xf32>
  %1 = tile.rope %k, %cos, %sin
      : tensor<?x?x?x128xbf16>, tensor<1x?x1x64xf32>
  return %0, %1 : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>
})";
  request.target = "sm_90";
  std::vector<LaunchCandidates> launches = enumerate(request);
  ASSERT_EQ(launches.size(), 1u);
  ASSERT_GE(launches[0].candidates.size(), 2u);
  const std::string &pins = launches[0].candidates[1].pins;
  EXPECT_NE(pins.find("f_kernel0: "), std::string::npos) << pins;
  EXPECT_NE(pins.find("; f_kernel1: "), std::string::npos) << pins;
}

TEST(ScheduleSpaceTest, hasOneScheduleOnTheHost) {
  CompileRequest request = makeNorm("2880");
  request.target = "host";
  for (const LaunchCandidates &launch : enumerate(request))
    EXPECT_EQ(launch.candidates.size(), 1u);
  request = makeProduct("bf16");
  request.target = "host";
  EXPECT_EQ(enumerateFields(request).size(), 1u);
}

TEST(ScheduleSpaceTest, saysWhatDoesNotCompile) {
  CompileRequest request = makeNorm("2880");
  request.source = "func.func @f(";
  auto launches = enumerateSchedules(request);
  EXPECT_TRUE(launches.takeError());
}

} // namespace
