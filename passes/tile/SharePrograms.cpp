//===- SharePrograms.cpp - One program for launches of equal ones ---------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "dialect/Tile.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"

namespace bastile {
#define GEN_PASS_DEF_SHAREPROGRAMS
#include "passes/Passes.h.inc"
} // namespace bastile

using namespace mlir;
using namespace bastile;

/// All attributes of `program` but its name.
static DictionaryAttr getMarks(tile::ProgramOp program) {
  NamedAttrList marks(program->getAttrDictionary());
  marks.erase(program.getSymNameAttrName());
  return marks.getDictionary(program.getContext());
}

/// Whether two programs of the same attributes compute the same.
static bool isSame(tile::ProgramOp lhs, tile::ProgramOp rhs) {
  return OperationEquivalence::isRegionEquivalentTo(
      &lhs.getBody(), &rhs.getBody(), OperationEquivalence::IgnoreLocations);
}

namespace {

struct ShareProgramsPass
    : public bastile::impl::ShareProgramsBase<ShareProgramsPass> {
  using ShareProgramsBase::ShareProgramsBase;

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    SetVector<Operation *> left;
    for (auto func : getOperation().getOps<func::FuncOp>())
      share(func, symbols, left);
    if (left.empty())
      return markAllAnalysesPreserved();
    getOperation().walk([&](tile::LaunchOp launch) {
      for (StringRef name : launch.getNames())
        left.remove(symbols.lookup(name));
    });
    for (Operation *program : left)
      symbols.erase(program);
  }

  /// Lets launches of `func` whose programs are equal run the first one, and
  /// adds the programs that they ran to `left`.
  static void share(func::FuncOp func, const SymbolTable &symbols,
                    SetVector<Operation *> &left) {
    DenseMap<Attribute, SmallVector<tile::ProgramOp>> kept;
    func.walk([&](tile::LaunchOp launch) {
      SmallVector<Attribute> names;
      for (StringRef name : launch.getNames()) {
        auto program = symbols.lookup<tile::ProgramOp>(name);
        if (!program)
          return;
        SmallVector<tile::ProgramOp> &alike = kept[getMarks(program)];
        auto *equal = llvm::find_if(alike, [&](tile::ProgramOp other) {
          return other == program || isSame(other, program);
        });
        if (equal == alike.end()) {
          alike.push_back(program);
        } else if (*equal != program) {
          left.insert(program);
          program = *equal;
        }
        names.push_back(FlatSymbolRefAttr::get(program));
      }
      launch.setKernelsAttr(ArrayAttr::get(func.getContext(), names));
    });
  }
};

} // namespace
