//===- Call.h - One call of a function ------------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TOOLS_TILERUN_CALL_H
#define BASTILE_TOOLS_TILERUN_CALL_H

#include "Machine.h"
#include "Tensor.h"
#include <set>

namespace bastile::run {

/// A function with the tensors that it is called on, in a machine's memory.
class Call {
public:
  /// Copies `inputs` and `outputs` to `machine` and plans the launches. With
  /// `inPlace`, outputs take the memory of inputs where they may. The function
  /// and the machine must outlive the call.
  static runtime::Expected<std::unique_ptr<Call>>
  create(const Machine &machine, const runtime::Function &function,
         const std::vector<Tensor> &inputs, const std::vector<Tensor> &outputs,
         bool inPlace);

  runtime::LaunchPlan &plan() { return launches; }

  /// Copies the outputs back.
  runtime::Error read(const Machine &machine,
                      std::vector<Tensor> &outputs) const;

  /// Checks that the call has written only elements of its outputs and
  /// temporaries, and of inputs whose memory these take. `outputs` are those
  /// that `read` has filled.
  runtime::Error checkMemory(const Machine &machine,
                             const std::vector<Tensor> &inputs,
                             const std::vector<Tensor> &outputs);

private:
  /// Tensors on the machine.
  struct Placed {
    std::vector<std::shared_ptr<Memory>> memory;
    std::vector<runtime::TensorView> views;
  };

  explicit Call(const runtime::Function &function) : function(function) {}
  static runtime::Error place(const Machine &machine, const Tensor &tensor,
                              Placed &placed);
  runtime::Error placeOutput(const Machine &machine, const Tensor &tensor,
                             const runtime::BufferSpec &spec, bool inPlace);

  const runtime::Function &function;
  Placed inputs, outputs, temporaries;
  /// The inputs whose memory outputs have taken.
  std::set<unsigned> overwritten;
  std::vector<Tensor> scratch;
  runtime::LaunchPlan launches;
};

/// The outputs of a call of `function` on `inputs`, placed in memory like the
/// inputs.
runtime::Expected<std::vector<Tensor>>
makeOutputs(const Machine &machine, const runtime::Function &function,
            const std::vector<Tensor> &inputs, const Placement &placement);

} // namespace bastile::run

#endif // BASTILE_TOOLS_TILERUN_CALL_H
