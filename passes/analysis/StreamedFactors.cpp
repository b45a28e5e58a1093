//===- StreamedFactors.cpp - Factors that no memory holds -----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/analysis/StreamedFactors.h"

#include "dialect/KernelSpace.h"
#include "dialect/Rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "passes/analysis/FollowingSums.h"
#include "passes/analysis/Rounds.h"

using namespace mlir;
using namespace bastile;

/// The most columns that a program has of a product, and the most elements that
/// it sums at once.
static constexpr int64_t kMostWhole = 256;

static bool isWhole(int64_t size) { return size > 1 && size <= kMostWhole; }

/// How many elements `dot` sums over, where both factors have that number:
/// memory for whole rows of a factor is of its type's size.
static int64_t getDepth(tile::DotOp dot) {
  int64_t depth = 0;
  for (unsigned index : {0, 1}) {
    auto type = cast<RankedTensorType>(dot.getOperand(index).getType());
    depth = type.getDimSize(dot.getContractedDimension(index));
    if (ShapedType::isDynamic(depth))
      return ShapedType::kDynamic;
  }
  return depth;
}

StreamedFactors::StreamedFactors(func::FuncOp func, const Rounds &rounds)
    : rounds(rounds), following(func.front()) {
  Block &block = func.front();
  for (auto dot : block.getOps<tile::DotOp>()) {
    Ops ops = getComputedFactor(dot);
    ops.remove_if([&](Operation *op) { return !rounds.isRowOp(op); });
    if (isStreamed(dot, ops))
      products.insert({dot, std::move(ops)});
  }
  // A product's factor may be computed of what another one's is.
  DenseSet<Operation *> others;
  do {
    products.remove_if(
        [&](auto &product) { return others.contains(product.first); });
    streamed.clear();
    others.clear();
    for (auto &[dot, ops] : products)
      streamed.insert(ops.begin(), ops.end());
    for (auto &[dot, ops] : products)
      if (streamed.contains(dot) ||
          isNeededOutside(cast<tile::DotOp>(dot), ops))
        others.insert(dot);
  } while (!others.empty());
  addStatistics(block);
}

/// Whether two sizes may be one, of which only a call may know some.
static bool mayBeSame(int64_t lhs, int64_t rhs) {
  return lhs == rhs || ShapedType::isDynamic(lhs) || ShapedType::isDynamic(rhs);
}

/// Whether the rows that the left factor of `dot` is summed along or over are
/// those of one program: the others are the product's own. Where the factor is
/// transposed, products may be added up over the batch.
static bool fitsRows(tile::DotOp dot) {
  ArrayRef<int64_t> left =
      cast<RankedTensorType>(dot.getA().getType()).getShape();
  ArrayRef<int64_t> shape = dot.getSumType().getShape();
  if (left.back() == 1 || shape[shape.size() - 2] == 1)
    return false;
  if (!sumsOverRows(dot))
    return left.drop_back() == shape.drop_back();
  return left.size() == shape.size() && left[left.size() - 2] != 1 &&
         mayBeSame(left.back(), shape[shape.size() - 2]) &&
         llvm::all_of(llvm::zip(left.drop_back(2), shape.drop_back(2)),
                      [](auto sizes) {
                        auto [own, result] = sizes;
                        return result == 1 || mayBeSame(own, result);
                      });
}

/// Whether a kernel can compute `op` for the left factor of `dot`.
bool StreamedFactors::fitsFactor(tile::DotOp dot, Operation *op) const {
  auto left = cast<RankedTensorType>(dot.getA().getType());
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  if (rounds.get(op) != rounds.get(dot) ||
      !(rounds.getCombinedRows(op) == rounds.getCombinedRows(dot)) ||
      type.getShape().drop_back() != left.getShape().drop_back() ||
      (type.getShape().back() != 1 &&
       type.getShape().back() != left.getShape().back()))
    return false;
  if (auto inner = dyn_cast<tile::DotOp>(op))
    // The loop over the batch is around all that the kernel computes.
    return !sumsOverBatch(inner) && isWhole(getDepth(inner)) &&
           inner.getContract()[0] == 1 && inner.getContract()[1] == 1 &&
           inner.getFactorType() == dot.getFactorType();
  return mayFollowDot(op) || isa<tile::IotaOp>(op) ||
         (isRowReduction(op) && !sumsOverRows(dot));
}

/// Whether the kernel of `dot` can compute `ops` for its left factor, as far as
/// others do not need them.
bool StreamedFactors::isStreamed(tile::DotOp dot, const Ops &ops) const {
  auto left = cast<RankedTensorType>(dot.getA().getType());
  const bool isRoundedByDot = dot.getFactorType() == left.getElementType() ||
                              left.getElementType().isF32();
  return isRoundedByDot && fitsRows(dot) &&
         isWhole(dot.getSumType().getShape().back()) &&
         llvm::any_of(ops, llvm::IsaPred<tile::DotOp>) &&
         llvm::all_of(ops,
                      [&](Operation *op) { return fitsFactor(dot, op); }) &&
         !isReadEarlier(dot, ops) && computesOnce(dot, ops);
}

/// Whether something that the kernel of `dot` reads is one of `ops` or waits
/// for one, and so for the kernel itself.
bool StreamedFactors::isReadEarlier(tile::DotOp dot, const Ops &ops) const {
  // All factors but the streamed one are in memory.
  auto isComputedHere = [&](Value factor) {
    return ops.contains(factor.getDefiningOp());
  };
  if (isComputedHere(dot.getB()) || llvm::any_of(ops, [&](Operation *op) {
        auto inner = dyn_cast<tile::DotOp>(op);
        return inner &&
               (isComputedHere(inner.getA()) || isComputedHere(inner.getB()));
      }))
    return true;
  Ops before;
  auto add = [&](Value value) {
    if (Operation *op = value.getDefiningOp(); op && !ops.contains(op))
      before.insert(op);
  };
  add(dot.getB());
  for (Operation *op : ops)
    llvm::for_each(getValueOperands(op), add);
  for (size_t next = 0; next < before.size(); ++next)
    for (Value operand : getValueOperands(before[next])) {
      if (ops.contains(operand.getDefiningOp()))
        return true;
      add(operand);
    }
  return false;
}

/// Whether one loop over the columns of the left factor of `dot` is enough.
bool StreamedFactors::computesOnce(tile::DotOp dot, const Ops &ops) const {
  // What waits for a reduction, and for one that follows no other.
  DenseSet<Operation *> waiting;
  for (Operation &op : *dot->getBlock()) {
    if (!ops.contains(&op) && &op != dot)
      continue;
    const bool waits = llvm::any_of(getValueOperands(&op), [&](Value value) {
      return waiting.contains(value.getDefiningOp());
    });
    const bool isSum = isRowReduction(&op) || &op == dot;
    if (isSum && waits && !following.lookup(&op))
      return false;
    if (isSum || waits)
      waiting.insert(&op);
  }
  return true;
}

/// Whether a loop along the rows of a factor may leave `op`, one of its `ops`,
/// in memory: `op` waits for no reduction. The gradient of scores is such an
/// op.
static bool isLeft(Operation *op, const StreamedFactors::Ops &ops) {
  if (getElementTypeOrSelf(op->getResult(0).getType()).isInteger(1))
    return false;
  StreamedFactors::Ops before;
  before.insert(op);
  for (size_t next = 0; next < before.size(); ++next) {
    if (isRowReduction(before[next]))
      return false;
    for (Value operand : getValueOperands(before[next]))
      if (Operation *producer = operand.getDefiningOp();
          producer && ops.contains(producer))
        before.insert(producer);
  }
  return true;
}

/// Whether one of `readers` needs the value of one of `ops`, or its sizes,
/// through any other ops.
static bool needAny(StreamedFactors::Ops readers, ArrayRef<Operation *> ops) {
  for (size_t next = 0; next < readers.size(); ++next)
    for (Value operand : readers[next]->getOperands())
      if (Operation *producer = operand.getDefiningOp()) {
        if (llvm::is_contained(ops, producer))
          return true;
        readers.insert(producer);
      }
  return false;
}

/// Adds to `needed` those of `ops` that its ops need.
static void addNeeded(StreamedFactors::Ops &needed,
                      const StreamedFactors::Ops &ops) {
  for (size_t next = 0; next < needed.size(); ++next)
    for (Value operand : needed[next]->getOperands())
      if (Operation *op = operand.getDefiningOp(); op && ops.contains(op))
        needed.insert(op);
}

/// Whether `dot`, with those of `ops` that its left factor is computed of,
/// waits for another op that needs the value of `left` or its sizes: a kernel
/// that leaves `left` in memory would wait for itself.
static bool waitsFor(Operation *left, tile::DotOp dot,
                     const StreamedFactors::Ops &ops) {
  StreamedFactors::Ops own, before;
  own.insert(dot);
  addNeeded(own, ops);
  for (Operation *reader : own)
    for (Value operand : reader->getOperands())
      if (Operation *op = operand.getDefiningOp(); op && !ops.contains(op))
        before.insert(op);
  return needAny(std::move(before), left);
}

/// Whether something else needs one of `ops`, those of `dot`, for each column,
/// and no loop over the columns leaves it.
bool StreamedFactors::isNeededOutside(tile::DotOp dot, const Ops &ops) const {
  auto isNeeded = [&](Operation *op) {
    return !isa<arith::ConstantOp>(op) &&
           KernelSpace::hasColumns(op->getResult(0)) &&
           llvm::any_of(op->getUses(), [&](OpOperand &use) {
             Operation *user = use.getOwner();
             // Of a product's factors, only a streamed one is not in memory.
             if (auto reader = dyn_cast<tile::DotOp>(user))
               return !products.contains(reader) || use.get() == reader.getB();
             return getSizeOperand(user) != &use && !streamed.contains(user);
           });
  };
  return llvm::any_of(ops, [&](Operation *op) {
    if (!isNeeded(op))
      return false;
    // The first product along rows that needs the op leaves it.
    const auto *first = llvm::find_if(products, [&](const auto &product) {
      return !sumsOverRows(cast<tile::DotOp>(product.first)) &&
             product.second.contains(op);
    });
    if (sumsOverRows(dot))
      return first == products.end();
    return !isLeft(op, ops) || (first->first == dot && waitsFor(op, dot, ops));
  });
}

/// Whether `op` repeats a number for each row, which any kernel can.
static bool repeatsNumber(Operation *op) {
  auto broadcast = dyn_cast_if_present<tile::BroadcastOp>(op);
  return broadcast && !isa<RankedTensorType>(broadcast.getSource().getType());
}

/// Adds ops on row statistics that follow from a streamed factor's to the
/// product of that factor.
void StreamedFactors::addStatistics(Block &block) {
  for (auto &[dot, own] : products) {
    Ops &ops = own;
    for (Operation &op : block.without_terminator()) {
      if (ops.contains(&op) || !rounds.isRowOp(&op) || !mayFollowDot(&op) ||
          KernelSpace::hasColumns(op.getResult(0)) ||
          isa<tile::BroadcastOp, arith::ConstantOp>(op) ||
          rounds.get(&op) != rounds.get(dot))
        continue;
      bool follows = false, fits = true;
      SmallVector<Operation *, 2> repeated;
      for (Value operand : getValueOperands(&op)) {
        Operation *producer = operand.getDefiningOp();
        const bool isOwn = producer && ops.contains(producer);
        follows |= isOwn;
        if (!isOwn && repeatsNumber(producer))
          repeated.push_back(producer);
        else
          fits &= isOwn || (producer && !rounds.isRowOp(producer));
      }
      if (!follows || !fits)
        continue;
      ops.insert(repeated.begin(), repeated.end());
      ops.insert(&op);
    }
    streamed.insert(ops.begin(), ops.end());
  }
}

StreamedOps bastile::findStreamedOps(func::FuncOp func) {
  StreamedOps found;
  if (func.front().getOps<tile::DotOp>().empty())
    return found;
  // Where gradients stop has no meaning for values, but would hide what a sum
  // follows.
  IRMapping mapping;
  OwningOpRef<func::FuncOp> copy(cast<func::FuncOp>(func->clone(mapping)));
  for (Operation &op : llvm::make_early_inc_range(copy->front()))
    if (isa<tile::StopGradientOp>(op)) {
      op.replaceAllUsesWith(op.getOperands());
      op.erase();
    }
  const Rounds rounds(*copy);
  const StreamedFactors streamed(*copy, rounds);
  for (Operation &op : func.front().without_terminator()) {
    if (isa<tile::StopGradientOp>(op))
      continue;
    Operation *copied = mapping.lookup(&op);
    if (streamed.contains(copied))
      found.factors.insert(&op);
    if (streamed.getProducts().contains(copied))
      found.products.insert(&op);
  }
  return found;
}

//===----------------------------------------------------------------------===//
// Ops of their own
//===----------------------------------------------------------------------===//

/// Whether one kernel can have both products, beside `inner` others: their sums
/// have one shape, and there are registers for all of them. Warpgroups have the
/// factors of their products in shared memory, and so registers for more sums.
static bool shareKernel(ArrayRef<Operation *> dots, tile::DotOp dot,
                        size_t inner, const Target &target) {
  constexpr int64_t ofStep = 32;
  const int64_t mostColumns = target.hasWarpgroupProducts() ? 320 : 256;
  auto other = cast<tile::DotOp>(dots.front());
  const int64_t columns = dot.getSumType().getShape().back();
  return dot.getSumType().getShape() == other.getSumType().getShape() &&
         dot.getB().getType() == other.getB().getType() &&
         dot.getContract() == other.getContract() &&
         columns * static_cast<int64_t>(dots.size() + 1) +
                 ofStep * static_cast<int64_t>(inner) <=
             mostColumns;
}

namespace {

/// Products of one kernel, and the ops of their streamed factors.
struct SharedKernel {
  SmallVector<Operation *> dots;
  llvm::SetVector<Operation *> ops;
};

} // namespace

/// Adds product `dot` with its `ops` to the kernel that it can share with
/// others, which have some of these ops and are ahead of `dot`.
static void addToKernel(std::vector<SharedKernel> &kernels, Operation *dot,
                        const StreamedFactors::Ops &ops, const Target &target) {
  auto hasCommonOps = [&](const SharedKernel &kernel) {
    return llvm::any_of(ops,
                        [&](Operation *op) { return kernel.ops.contains(op); });
  };
  for (SharedKernel &kernel : kernels) {
    llvm::SetVector<Operation *> all(kernel.ops);
    all.insert(ops.begin(), ops.end());
    const size_t inner = llvm::count_if(all, llvm::IsaPred<tile::DotOp>);
    if (!hasCommonOps(kernel) ||
        !shareKernel(kernel.dots, cast<tile::DotOp>(dot), inner, target))
      continue;
    // The gradient of queries needs the result, in one function with it.
    StreamedFactors::Ops reader;
    reader.insert(dot);
    if (needAny(std::move(reader), kernel.dots))
      continue;
    kernel.dots.push_back(dot);
    kernel.ops = std::move(all);
    return;
  }
  kernels.push_back({{dot}, ops});
}

/// Makes the products of `kernel` read copies of its ops, as far as they need
/// them. Returns whether there are such copies.
static bool copyFactors(const SharedKernel &kernel) {
  StreamedFactors::Ops needed;
  for (Operation *dot : kernel.dots)
    if (Operation *op = cast<tile::DotOp>(dot).getA().getDefiningOp();
        op && kernel.ops.contains(op))
      needed.insert(op);
  addNeeded(needed, kernel.ops);
  SmallVector<Operation *> sorted(needed.getArrayRef());
  llvm::sort(sorted, [](Operation *lhs, Operation *rhs) {
    return lhs->isBeforeInBlock(rhs);
  });
  IRMapping copies;
  for (Operation *op : sorted) {
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    builder.clone(*op, copies);
  }
  for (Operation *dot : kernel.dots)
    dot->setOperand(0, copies.lookupOrDefault(dot->getOperand(0)));
  return !sorted.empty();
}

/// Lets ops that other kernels compute take their sizes from the left factor of
/// an inner product, not from the product, which no memory holds.
static void giveSizesToOthers(func::FuncOp func,
                              const StreamedFactors &streamed) {
  for (Operation &op : func.front().without_terminator()) {
    OpOperand *source = getSizeOperand(&op);
    if (!source || !isRowTensor(source->get()) || streamed.contains(&op))
      continue;
    Value root = getSizeRoot(source->get());
    auto dot = root.getDefiningOp<tile::DotOp>();
    auto type = cast<RankedTensorType>(op.getResult(0).getType());
    if (!dot || !streamed.contains(dot) || dot.getContract()[0] != 1 ||
        ShapedType::isDynamic(type.getShape().back()) ||
        cast<RankedTensorType>(dot.getA().getType()).getShape().drop_back() !=
            dot.getSumType().getShape().drop_back())
      continue;
    source->set(getSizeRoot(dot.getA()));
  }
}

/// Gives each kernel of products ops of its own that compute their factors.
/// Returns whether some of them are copies.
static bool copySharedFactors(func::FuncOp func, const Target &target) {
  const Rounds rounds(func);
  const StreamedFactors streamed(func, rounds);
  giveSizesToOthers(func, streamed);
  // Kernels that sum along rows come first: they may have others that need the
  // same ops, such as reductions.
  std::vector<SharedKernel> kernels;
  for (const bool overRows : {false, true})
    for (auto &[dot, ops] : streamed.getProducts())
      if (sumsOverRows(cast<tile::DotOp>(dot)) == overRows)
        addToKernel(kernels, dot, ops, target);
  llvm::SmallPtrSet<Operation *, 32> taken;
  std::vector<Operation *> replaced;
  bool hasCopies = false;
  for (const SharedKernel &kernel : kernels) {
    const bool isShared = llvm::any_of(
        kernel.ops, [&](Operation *op) { return taken.contains(op); });
    if (isShared) {
      hasCopies |= copyFactors(kernel);
      llvm::append_range(replaced, kernel.ops);
    }
    taken.insert(kernel.ops.begin(), kernel.ops.end());
  }
  llvm::sort(replaced, [](Operation *lhs, Operation *rhs) {
    return rhs->isBeforeInBlock(lhs);
  });
  replaced.erase(llvm::unique(replaced), replaced.end());
  for (Operation *op : replaced)
    if (op->use_empty())
      op->erase();
  return hasCopies;
}

void bastile::separateFactors(func::FuncOp func, const Target &target) {
  // With copies for some products, the factors of others may be streamed as
  // well, and share ops in turn. Each round separates one product or more.
  const auto dots = func.front().getOps<tile::DotOp>();
  for (auto left = std::distance(dots.begin(), dots.end()); left > 0; --left)
    if (!copySharedFactors(func, target))
      return;
}
