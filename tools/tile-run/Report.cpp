//===- Report.cpp - Results as a table or as JSON -------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Report.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include <cmath>

using namespace bastile;
using namespace bastile::run;
using llvm::StringRef;
using runtime::Dimensions;
namespace json = llvm::json;

static std::string printShape(const Dimensions &sizes) {
  std::string text;
  for (int64_t size : sizes)
    text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

/// The shape that says most about a call: that of the first input with rows.
static std::string printMainShape(const TrialResult &result) {
  for (const auto &[name, sizes] : result.shapes)
    if (sizes.size() >= 2)
      return printShape(sizes);
  return result.shapes.empty() ? "-" : printShape(result.shapes.front().second);
}

/// The indices of the element at `position` in row-major order.
static Dimensions getIndices(int64_t position, const Dimensions &sizes) {
  Dimensions indices = sizes;
  for (unsigned i = sizes.size(); i-- > 0;) {
    indices[i] = position % sizes[i];
    position /= sizes[i];
  }
  return indices;
}

static std::string printTime(double seconds) {
  if (seconds < 1e-3)
    return llvm::formatv("{0:f2} us", seconds * 1e6);
  return llvm::formatv("{0:f3} ms", seconds * 1e3);
}

static std::string printNumber(StringRef format, double number) {
  char text[32];
  snprintf(text, sizeof(text), format.str().c_str(), number);
  return text;
}

static void printFailure(const CheckedOutput &output, llvm::raw_ostream &os) {
  const char *format = runtime::isFloat(output.type) ? "%.9g" : "%.0f";
  const Comparison &comparison = output.comparison;
  os << "  " << output.name << "[";
  llvm::interleaveComma(getIndices(comparison.position, output.sizes), os);
  os << "]: got " << printNumber(format, comparison.got) << ", expected "
     << printNumber(format, comparison.expected) << "; "
     << printNumber("%.3g", comparison.error) << " ulp, allowed "
     << printNumber("%.3g", comparison.allowed) << "\n";
}

void run::printTable(llvm::ArrayRef<TrialResult> results, StringRef target,
                     llvm::raw_ostream &os) {
  constexpr const char *columns =
      "{0,-20} {1,-16} {2,-8} {3,-10} {4,12} {5,12} {6,12} {7,12} {8,8}  "
      "{9}\n";
  os << llvm::formatv(columns, "function", "shape", "target", "output",
                      "error (ulp)", "(relative)", "of allowed", "time", "GB/s",
                      "result");
  for (const TrialResult &result : results) {
    std::string shape = printMainShape(result);
    std::string time = "-", rate = "-";
    if (result.seconds) {
      time = printTime(*result.seconds);
      rate = printNumber("%.1f", result.bytes / *result.seconds / 1e9);
    }
    if (result.outputs.empty())
      os << llvm::formatv(columns, result.function, shape, target, "-", "-",
                          "-", "-", time, rate, "not checked");
    for (const CheckedOutput &output : result.outputs) {
      os << llvm::formatv(columns, result.function, shape, target, output.name,
                          printNumber("%.3f", output.comparison.ulps),
                          printNumber("%.2e", output.comparison.relative),
                          printNumber("%.3f", output.comparison.ofAllowed),
                          time, rate, output.passed() ? "PASS" : "FAIL");
      if (!output.passed())
        printFailure(output, os);
    }
  }
}

static json::Value getNumber(double number) {
  if (std::isfinite(number))
    return number;
  return printNumber("%g", number);
}

static json::Array getSizes(const Dimensions &sizes) {
  return json::Array(llvm::ArrayRef(sizes.begin(), sizes.size()));
}

static json::Object getOutput(const CheckedOutput &output) {
  const Comparison &comparison = output.comparison;
  json::Object object{{"name", output.name},
                      {"type", StringRef(runtime::name(output.type))},
                      {"ulps", getNumber(comparison.ulps)},
                      {"relative", getNumber(comparison.relative)},
                      {"of_allowed", getNumber(comparison.ofAllowed)},
                      {"unbounded", comparison.unbounded},
                      {"pass", output.passed()}};
  if (comparison.position < 0)
    return object;
  object["index"] = getSizes(getIndices(comparison.position, output.sizes));
  object["allowed"] = getNumber(comparison.allowed);
  object["got"] = getNumber(comparison.got);
  object["expected"] = getNumber(comparison.expected);
  return object;
}

void run::printJson(llvm::ArrayRef<TrialResult> results, StringRef target,
                    llvm::raw_ostream &os) {
  bool passed = true;
  json::Array runs;
  for (const TrialResult &result : results) {
    passed &= result.passed();
    json::Object shapes;
    for (const auto &[name, sizes] : result.shapes)
      shapes[name] = getSizes(sizes);
    json::Array outputs;
    for (const CheckedOutput &output : result.outputs)
      outputs.push_back(getOutput(output));
    json::Object run{{"function", result.function},
                     {"shapes", std::move(shapes)},
                     {"outputs", std::move(outputs)},
                     {"variants", json::Array(result.variants)},
                     {"bytes", result.bytes}};
    if (result.seconds)
      run["seconds"] = *result.seconds;
    runs.push_back(std::move(run));
  }
  json::Object document{
      {"target", target}, {"pass", passed}, {"runs", std::move(runs)}};
  os << llvm::formatv("{0:2}\n", json::Value(std::move(document)));
}
