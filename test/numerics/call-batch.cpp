//===- call-batch.cpp - Calls many functions in one process ---------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// For tests of many small functions, most of whose time would be the start of a
// process. Compiles a module once, calls some of its functions and, given the
// gradients of their results, those that compute gradients from what the first
// have saved. Reads from the standard input
//
//   {"source": "all.mlir", "target": "host", "folder": "out", "calls": [
//     {"function": "f", "label": "first", "inputs":
//       {"x": "x.npy", "grad_result0": "dy.npy"}}]}
//
// and, optionally, "emulate", "threads", "schedule", "gradients" (a list of
// arguments), "together", "inPlace", "firstVariants", and in a call "gap" and
// "offset". Each output, and each gradient of an argument, is written to
// <folder>/<label>.<name>.npy, where the latter's name is grad_<argument>.
// Prints an object of the error messages by label, null where there is none.
//
//===----------------------------------------------------------------------===//

#include "bastile/Compiler.h"
#include "bastile/Source.h"
#include "tools/tile-run/Call.h"
#include "tools/tile-run/Inputs.h"
#include "tools/tile-run/Program.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/JSON.h"

using namespace bastile;
using namespace bastile::run;
using runtime::Error;
using runtime::Expected;
using runtime::Function;
using Source = runtime::Backward::Source;
namespace json = llvm::json;

namespace {

/// Ends the process with what is wrong with the request, a mistake of the
/// tests.
[[noreturn]] void reject(const llvm::Twine &message) {
  (void)report(message);
  exit(2);
}

class Batch {
public:
  Batch(const json::Object &request, Program &program)
      : folder(request.getString("folder").value_or(".")),
        inPlace(request.getBoolean("inPlace").value_or(false)),
        program(program) {}

  /// Calls one function and, if there is one, its backward.
  Error call(const json::Object &request);

private:
  Expected<std::vector<Tensor>> run(const Function &function,
                                    const std::vector<Tensor> &inputs);
  Error save(const std::string &name, const Tensor &tensor) const;
  Error differentiate(const Function &function,
                      const std::vector<Tensor> &inputs,
                      const std::vector<Tensor> &outputs,
                      const NamedValues &given);

  std::string folder, label;
  bool inPlace;
  Program &program;
  Placement placement;
  ArrayFiles files;
};

} // namespace

Error Batch::save(const std::string &name, const Tensor &tensor) const {
  const std::vector<char> elements = tensor.getElements();
  runtime::NpyArray array;
  array.type = tensor.type();
  array.shape.assign(tensor.sizes().begin(), tensor.sizes().end());
  array.data.assign(elements.begin(), elements.end());
  return runtime::saveNpy(folder + "/" + label + "." + name + ".npy", array);
}

Expected<std::vector<Tensor>> Batch::run(const Function &function,
                                         const std::vector<Tensor> &inputs) {
  Machine &machine = *program.machine;
  auto outputs = makeOutputs(machine, function, inputs, placement);
  if (!outputs)
    return outputs;
  auto call = Call::create(machine, function, inputs, *outputs, inPlace);
  if (!call)
    return call.takeError();
  if (Error error = machine.run((*call)->plan()))
    return error;
  if (Error error = (*call)->read(machine, *outputs))
    return error;
  if (Error error = (*call)->checkMemory(machine, inputs, *outputs))
    return error;
  return outputs;
}

/// Reads an input, which has the sizes of its file.
static Expected<Tensor> load(const std::string &file, runtime::ElementType type,
                             ArrayFiles &files) {
  Expected<const runtime::NpyArray *> array = files.load(file, {type});
  if (!array)
    return array.takeError();
  Tensor tensor(
      type, runtime::Dimensions((*array)->shape.data(), (*array)->shape.size()),
      Placement());
  tensor.setElements((*array)->data.data());
  return tensor;
}

Error Batch::differentiate(const Function &function,
                           const std::vector<Tensor> &inputs,
                           const std::vector<Tensor> &outputs,
                           const NamedValues &given) {
  const runtime::Backward &backward = *function.backward;
  auto find = [&](const Source &source,
                  const std::vector<Tensor> &results) -> Expected<Tensor> {
    switch (source.kind) {
    case Source::Kind::Input:
      return inputs[source.index];
    case Source::Kind::Output:
      return outputs[source.index];
    case Source::Kind::Result:
      return results[source.index];
    case Source::Kind::Gradient:
      break;
    }
    const runtime::BufferSpec &output = function.outputs[source.index];
    auto file = given.find("grad_" + output.name);
    if (file == given.end())
      return Error("no gradient of '" + output.name + "' is given");
    return load(file->second, output.type, files);
  };
  std::vector<Tensor> results;
  if (!backward.function.empty()) {
    std::vector<Tensor> taken;
    for (const Source &source : backward.inputs) {
      Expected<Tensor> tensor = find(source, {});
      if (!tensor)
        return tensor.takeError();
      taken.push_back(std::move(*tensor));
    }
    auto computed = run(*program.metadata.find(backward.function), taken);
    if (!computed)
      return computed.takeError();
    results = std::move(*computed);
  }
  for (size_t i = 0; i != inputs.size(); ++i) {
    if (!backward.gradients[i])
      continue;
    Expected<Tensor> gradient = find(*backward.gradients[i], results);
    if (!gradient)
      return gradient.takeError();
    if (Error error = save("grad_" + function.inputs[i].name, *gradient))
      return error;
  }
  return Error::success();
}

Error Batch::call(const json::Object &request) {
  const std::string name(request.getString("function").value_or(""));
  const Function *function = program.metadata.find(name);
  if (!function)
    return Error("there is no function '" + name + "'");
  label = request.getString("label").value_or(name).str();
  placement = {request.getInteger("gap").value_or(0),
               request.getInteger("offset").value_or(0)};
  InputOptions options;
  options.placement = placement;
  // Some of these inputs belong to the backward.
  NamedValues given;
  for (const auto &[key, file] : *request.getObject("inputs"))
    given[key.str()] = file.getAsString()->str();
  for (const runtime::InputSpec &spec : function->inputs)
    if (auto file = given.find(spec.name); file != given.end())
      options.files.insert(*file);
  auto inputs = makeInputs(*function, options, files);
  if (!inputs)
    return inputs.takeError();
  auto outputs = run(*function, *inputs);
  if (!outputs)
    return outputs.takeError();
  for (size_t i = 0; i != outputs->size(); ++i)
    if (Error error = save(function->outputs[i].name, (*outputs)[i]))
      return error;
  if (!function->backward)
    return Error::success();
  return differentiate(*function, *inputs, *outputs, given);
}

/// Finds the target, and the machine that runs it.
static ProgramOptions getOptions(const json::Object &request) {
  ProgramOptions options;
  const llvm::StringRef name = request.getString("target").value_or("host");
  if (name == "gpu") {
    auto device = openDevice();
    if (!device)
      reject(device.takeError().message());
    auto target = getTarget(**device);
    if (!target)
      reject(target.takeError().message());
    options.device = std::move(*device);
    options.target = *target;
  } else {
    llvm::Expected<const Target &> target = Target::lookup(name);
    if (!target)
      reject(llvm::toString(target.takeError()));
    options.target = &*target;
  }
  options.isEmulated = request.getBoolean("emulate").value_or(false);
  options.threads =
      static_cast<unsigned>(request.getInteger("threads").value_or(1));
  options.schedule = request.getString("schedule").value_or("").str();
  if (request.getBoolean("firstVariants").value_or(false))
    options.kernels = KernelSelection::firstVariants();
  // Invalid code that gives right numbers all the same is a mistake, too.
  options.verifyPasses = true;
  options.gradients.together = request.getBoolean("together").value_or(false);
  options.gradients.inPlace = request.getBoolean("inPlace").value_or(false);
  if (const json::Array *names = request.getArray("gradients"))
    for (const json::Value &argument : *names)
      options.gradients.arguments.push_back(argument.getAsString()->str());
  return options;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  auto text = llvm::MemoryBuffer::getSTDIN();
  if (!text)
    reject(text.getError().message());
  auto parsed = json::parse((*text)->getBuffer());
  if (!parsed)
    reject(llvm::toString(parsed.takeError()));
  const json::Object *request = parsed->getAsObject();
  const json::Array *calls = request ? request->getArray("calls") : nullptr;
  if (!calls || !request->getString("source"))
    reject("a request has a source and calls");

  auto source = SourceFile::open(*request->getString("source"));
  if (!source)
    reject(llvm::toString(source.takeError()));
  mlir::OwningOpRef<mlir::ModuleOp> module = (*source)->parse();
  if (!module)
    return 1;
  llvm::FailureOr<Program> program =
      run::compile(*module, getOptions(*request));
  if (failed(program))
    return 1;
  Batch batch(*request, *program);
  json::Object messages;
  for (const json::Value &call : *calls) {
    const json::Object &one = *call.getAsObject();
    Error error = batch.call(one);
    messages[one.getString("label").value_or(*one.getString("function"))] =
        error ? json::Value(error.message()) : json::Value(nullptr);
  }
  llvm::outs() << json::Value(std::move(messages)) << "\n";
  return 0;
}
