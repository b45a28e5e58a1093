//===- SchedulePins.cpp - What a user asks of schedules -------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/SchedulePins.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "passes/schedule/ScheduleFields.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace bastile;

/// The schedule that `text` spells, where fields alone are of the kind of
/// `open`. Where the attribute's own parser refuses it, the result is null and
/// `message` receives what the parser says first.
static KernelScheduleInterface parseSchedule(StringRef text,
                                             KernelScheduleInterface open,
                                             std::string &message) {
  MLIRContext *context = open.getContext();
  ScopedDiagnosticHandler collector(context, [&](Diagnostic &diagnostic) {
    if (message.empty())
      message = diagnostic.str();
    return success();
  });
  if (!text.starts_with("#"))
    return cast_or_null<KernelScheduleInterface>(
        parseAttribute(getKindName(open) + "<" + text.str() + ">", context));
  Attribute schedule = parseAttribute(text, context);
  if (schedule && !isa<KernelScheduleInterface>(schedule)) {
    llvm::raw_string_ostream(message)
        << schedule << " is not the schedule of a kernel";
    return nullptr;
  }
  return cast_or_null<KernelScheduleInterface>(schedule);
}

/// The first field that `text` spells as 0; empty where there is none. 0 stands
/// for a field that nobody has chosen, so that it pins nothing.
static StringRef findZero(StringRef text) {
  const size_t open = text.find('<');
  if (open != StringRef::npos)
    text = text.substr(open + 1).take_until([](char c) { return c == '>'; });
  SmallVector<StringRef> fields;
  text.split(fields, ',');
  for (StringRef field : fields) {
    auto [name, value] = field.split('=');
    if (value.trim() == "0")
      return name.trim();
  }
  return {};
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
    KernelScheduleInterface open =
        name.empty()
            ? cast<KernelScheduleInterface>(
                  ScheduleFields().getAttr(module.getContext()))
            : getOpenSchedule(module.lookupSymbol<tile::KernelOp>(name));
    std::string message;
    KernelScheduleInterface schedule =
        parseSchedule(fields.trim(), open, message);
    if (!schedule)
      return error() << message;
    if (StringRef zero = findZero(fields); !zero.empty())
      return error() << "'" << zero
                     << "' is 0, which pins nothing; leave it out, and it is "
                        "chosen";
    if (!name.empty() && schedule.getTypeID() != open.getTypeID())
      return error() << "kernel '" << name << "' takes a schedule "
                     << getKindName(open) << ", not " << schedule;
    KernelScheduleInterface &pinned = name.empty()
                                          ? pins.ofKinds[schedule.getTypeID()]
                                          : pins.ofKernels[name];
    if (pinned && name.empty())
      return error() << "fields for every kernel are given twice";
    if (pinned)
      return error() << "fields for '" << name << "' are given twice";
    pinned = schedule;
  }
  return pins;
}
