//===- SchedulePins.cpp - What a user asks of schedules -------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/SchedulePins.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace bastile;

/// What stands around the fields in a schedule's text.
static constexpr llvm::StringLiteral kPrefix = "#tile.schedule<";
static constexpr llvm::StringLiteral kSuffix = ">";

/// The schedule with these fields. Where its own parser refuses them, the
/// result is null and `message` receives what the parser says first.
static tile::ScheduleAttr parseFields(StringRef fields, MLIRContext *context,
                                      std::string &message) {
  ScopedDiagnosticHandler collector(context, [&](Diagnostic &diagnostic) {
    if (message.empty())
      message = diagnostic.str();
    return success();
  });
  return dyn_cast_or_null<tile::ScheduleAttr>(
      parseAttribute((Twine(kPrefix) + fields + kSuffix).str(), context));
}

std::string bastile::printFields(tile::ScheduleAttr schedule) {
  std::string text;
  llvm::raw_string_ostream(text) << schedule;
  StringRef fields(text);
  // A schedule without fields has no brackets.
  if (!fields.consume_front(kPrefix) || !fields.consume_back(kSuffix))
    return "";
  return fields.str();
}

static std::string getKernelNames(ModuleOp module) {
  SmallVector<StringRef> names;
  for (auto kernel : module.getOps<tile::KernelOp>())
    names.push_back(kernel.getSymName());
  return names.empty() ? "the module has none"
                       : "there are " + llvm::join(names, ", ");
}

FailureOr<SchedulePins> SchedulePins::parse(StringRef text, ModuleOp module) {
  SchedulePins pins;
  auto error = [&]() {
    return module.emitError() << "in the schedule '" << text << "': ";
  };
  SmallVector<StringRef> parts;
  if (!text.trim().empty())
    text.split(parts, ';');
  for (StringRef part : parts) {
    StringRef name, fields = part;
    if (part.contains(':'))
      std::tie(name, fields) = part.split(':');
    name = name.trim();
    if (part.contains(':') && !module.lookupSymbol<tile::KernelOp>(name))
      return error() << "there is no kernel '" << name << "'; "
                     << getKernelNames(module);
    std::string message;
    tile::ScheduleAttr schedule =
        parseFields(fields.trim(), module.getContext(), message);
    if (!schedule)
      return error() << message;
    tile::ScheduleAttr &pinned =
        name.empty() ? pins.common : pins.ofKernels[name];
    if (pinned && name.empty())
      return error() << "fields for every kernel are given twice";
    if (pinned)
      return error() << "fields for '" << name << "' are given twice";
    pinned = schedule;
  }
  return pins;
}
