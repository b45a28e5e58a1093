//===- EmulatedProducts.cpp - Products of a warpgroup ---------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/emulator/EmulatedProducts.h"
#include "lib/emulator/EmulatedCluster.h"
#include "lib/emulator/Factors.h"
#include "llvm/ADT/bit.h"
#include <algorithm>
#include <cstring>

using namespace bastile;
using llvm::Twine;

static constexpr unsigned warpSize = 32, warpgroupWarps = 4;
static constexpr unsigned numRows = 64;
/// The bytes of a row of each factor.
static constexpr unsigned rowBytes = 32;
static constexpr uint64_t pieceBytes = SharedShadow::pieceBytes;

unsigned EmulatedCluster::warpgroupOf(unsigned thread) const {
  unsigned inBlock = llvm::divideCeil(blockThreads, Warpgroup::numThreads);
  return blockOf(thread) * inBlock +
         thread % blockThreads / Warpgroup::numThreads;
}

unsigned EmulatedCluster::firstThread(unsigned warpgroup) const {
  unsigned inBlock = llvm::divideCeil(blockThreads, Warpgroup::numThreads);
  return warpgroup / inBlock * blockThreads +
         warpgroup % inBlock * Warpgroup::numThreads;
}

std::string EmulatedCluster::warpgroupName(unsigned warpgroup) const {
  unsigned inBlock = llvm::divideCeil(blockThreads, Warpgroup::numThreads);
  std::string name = "warpgroup " + std::to_string(warpgroup % inBlock);
  if (launch.cluster != 1)
    name += " of block " + std::to_string(warpgroup / inBlock);
  return name;
}

/// The last thread of a warpgroup to come does what all have come for. That
/// says nothing about the order of their accesses: on a GPU, warps do not wait
/// for each other here.
void EmulatedCluster::arriveAtWarpgroup(unsigned thread) {
  const Wait &wait = threads[thread].wait;
  unsigned number = warpgroupOf(thread), first = firstThread(number);
  if (first % blockThreads + Warpgroup::numThreads > blockThreads)
    return fail(siteName(wait.site) + " by " + threadName(thread) +
                " takes a warpgroup of 128 threads, of which the block lacks "
                "some");
  Warpgroup &warpgroup = warpgroups[number];
  if (warpgroup.component == 0)
    warpgroup.component = clocks.addComponent();
  if (warpgroup.numArrived++ == 0)
    warpgroup.leader = thread;
  const Wait &its = threads[warpgroup.leader].wait;
  if (its.site != wait.site || its.operands.a != wait.operands.a ||
      its.operands.b != wait.operands.b)
    return fail("divergence in " + warpgroupName(number) + ": " +
                threadName(thread) + " is in " + siteName(wait.site) + ", " +
                threadName(warpgroup.leader) + " in " + siteName(its.site) +
                (its.site == wait.site ? " with other addresses" : ""));
  if (warpgroup.numArrived < Warpgroup::numThreads)
    return;

  warpgroup.numArrived = 0;
  switch (static_cast<WarpgroupStep>(wait.variant)) {
  case WarpgroupStep::Fence:
    break;
  case WarpgroupStep::Begin:
    beginProduct(number, wait);
    break;
  case WarpgroupStep::Commit:
    ++warpgroup.numGroups;
    break;
  case WarpgroupStep::WaitFor:
    waitForProducts(number, wait.mask);
    break;
  case WarpgroupStep::SetRegisters:
    setRegisters(number, wait);
    break;
  }
  for (unsigned one : llvm::seq(first, first + Warpgroup::numThreads))
    threads[one].state = Thread::Ready;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

/// Calls `visit` with each 16 bytes of a factor of `rows` rows: where they lie,
/// and the row and byte of the contracted dimension that they begin with.
template <typename Visitor>
static void forEachPiece(const EmulatedMatrix &matrix, char *address,
                         unsigned rows, Visitor visit) {
  char *start = address + matrix.offset;
  auto pieceAt = [&](uint64_t offset) {
    return swizzled(start + offset, matrix.swizzle);
  };
  if (!matrix.isTransposed) {
    uint64_t pitch = matrix.swizzle == 0 ? pieceBytes : matrix.swizzle;
    uint64_t step = matrix.swizzle == 0 ? matrix.leading : pieceBytes;
    for (unsigned row = 0; row < rows; ++row)
      for (unsigned half = 0; half < rowBytes / pieceBytes; ++half)
        visit(pieceAt(row / 8 * matrix.stride + row % 8 * pitch + half * step),
              row, half * pieceBytes);
    return;
  }
  constexpr unsigned elementBytes = 2;
  unsigned width = matrix.swizzle / elementBytes;
  for (unsigned k = 0; k < rowBytes / elementBytes; ++k)
    for (unsigned row = 0; row < rows; row += pieceBytes / elementBytes)
      visit(pieceAt(row / width * matrix.leading + k / 8 * matrix.stride +
                    k % 8 * matrix.swizzle + row % width * elementBytes),
            row, k * elementBytes);
}

/// Why a product cannot read a factor of `rows` rows that begins at `start`;
/// null if it can.
static const char *findFlaw(const EmulatedMatrix &matrix, uintptr_t start,
                            unsigned rows) {
  if (start % pieceBytes != 0)
    return "at an address that is no multiple of 16";
  if (matrix.swizzle == 0)
    return nullptr;
  // The descriptor of a factor says that its eight rows begin with the pattern.
  if (start % (8 * matrix.swizzle) >= matrix.swizzle)
    return "that begins within the eight rows of its swizzle's pattern";
  uint64_t contiguous = matrix.isTransposed
                            ? std::min<uint64_t>(rows * 2, matrix.swizzle)
                            : rowBytes;
  if (start % matrix.swizzle + contiguous > matrix.swizzle)
    return "that runs over the end of its swizzle's row";
  return nullptr;
}

/// Checks that a product may read a factor, and notes that it does.
bool EmulatedCluster::readFactor(unsigned number, const EmulatedMatrix &matrix,
                                 char *address, const PendingProduct &product,
                                 unsigned rows) {
  unsigned first = firstThread(number);
  auto start = reinterpret_cast<uintptr_t>(address + matrix.offset);
  if (const char *flaw = findFlaw(matrix, start, rows)) {
    fail(siteName(product.site) + " by " + warpgroupName(number) +
         " reads a factor " + flaw);
    return false;
  }
  llvm::SmallVector<unsigned, warpgroupWarps> warps;
  for (unsigned warp = 0; warp < warpgroupWarps; ++warp)
    warps.push_back(first / warpSize + warp);
  // The factor is read for all warps, each of which has to know what was
  // written.
  Clock known = clocks.common(warps);
  SharedShadow::Engine engine = {warpgroups[number].component, product.group,
                                 known, std::nullopt};
  forEachPiece(matrix, address, rows, [&](char *piece, unsigned, unsigned) {
    if (!failure.empty())
      return;
    auto at = reinterpret_cast<uintptr_t>(piece);
    std::optional<SharedPlace> place = placeOf(at);
    if (!place || place->block != blockOf(first) ||
        !findShared(place->offset, pieceBytes))
      return reportOutOfBounds(at, pieceBytes, "read", product.site);
    if (auto race = shadow.read(engine, shadowOffset(*place), pieceBytes))
      reportRace(*race, "a product of " + warpgroupName(number),
                 /*isWrite=*/false, product.site);
  });
  return failure.empty();
}

/// The row and column of a register of the sum in a thread of the warpgroup.
static std::pair<unsigned, unsigned> elementOf(unsigned thread,
                                               unsigned index) {
  unsigned row = 16 * (thread / 32) + thread % 32 / 4 + 8 * (index / 2 % 2);
  unsigned column = 8 * (index / 4) + 2 * (thread % 4) + index % 2;
  return {row, column};
}

bool EmulatedCluster::takeAccumulators(unsigned number,
                                       PendingProduct &product) {
  unsigned first = firstThread(number), columns = product.product->columns;
  std::optional<unsigned> before;
  product.sum.assign(numRows * columns, 0);
  for (unsigned thread : llvm::seq(first, first + Warpgroup::numThreads)) {
    const uint32_t *registers = threads[thread].wait.operands.registers;
    for (unsigned i = 0; i < columns / 2; ++i) {
      std::optional<Placeholder> one = Placeholder::decode(registers[i]);
      unsigned its = one ? one->product : 0;
      if (!before)
        before = its;
      if (its != *before || (one && one->index != i)) {
        fail(siteName(product.site) + " by " + threadName(thread) +
             " adds to registers of which some are not those of one product, "
             "in its order");
        return false;
      }
      auto [row, column] = elementOf(thread - first, i);
      product.sum[row * columns + column] = llvm::bit_cast<float>(registers[i]);
    }
  }
  product.before = *before;
  if (product.before == 0)
    return true;
  const Warpgroup &warpgroup = warpgroups[number];
  const PendingProduct *pending = warpgroup.find(product.before);
  auto computed = warpgroup.sums.find(product.before);
  if (warpgroup.findAdding(product.before) ||
      (!pending && computed == warpgroup.sums.end())) {
    reportPlaceholder(first, {product.before, 0}, product.site);
    return false;
  }
  unsigned size =
      pending ? numRows * pending->product->columns : computed->second.size();
  if (size == product.sum.size())
    return true;
  fail(siteName(product.site) + " by " + warpgroupName(number) +
       " adds to a product of another shape");
  return false;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void EmulatedCluster::beginProduct(unsigned number, const Wait &wait) {
  Warpgroup &warpgroup = warpgroups[number];
  unsigned first = firstThread(number);
  PendingProduct product;
  product.product = &launch.module.products[wait.mask];
  product.group = warpgroup.numGroups + 1;
  product.site = wait.site;
  product.a = wait.operands.a;
  product.b = wait.operands.b;
  const EmulatedProduct &shape = *product.product;
  if (shape.hasAccumulators) {
    if (!takeAccumulators(number, product))
      return;
  } else {
    product.sum.assign(numRows * shape.columns, 0);
  }
  if (shape.hasFragment)
    for (unsigned thread : llvm::seq(first, first + Warpgroup::numThreads)) {
      const uint32_t *fragment = threads[thread].wait.operands.fragment;
      product.fragment.insert(product.fragment.end(), fragment, fragment + 4);
    }
  else if (!readFactor(number, shape.a, product.a, product, numRows))
    return;
  if (!readFactor(number, shape.b, product.b, product, shape.columns))
    return;

  warpgroup.lastProduct = warpgroup.lastProduct % Placeholder::numProducts + 1;
  product.number = warpgroup.lastProduct;
  warpgroup.sites.resize(Placeholder::numProducts + 1, Warpgroup::noSite);
  warpgroup.sites[product.number] = product.site;
  for (unsigned thread : llvm::seq(first, first + Warpgroup::numThreads)) {
    uint32_t *registers = threads[thread].wait.operands.registers;
    for (unsigned i = 0; i < shape.columns / 2; ++i)
      registers[i] = Placeholder{product.number, i}.encode();
  }
  warpgroup.pending.push_back(std::move(product));
}

void EmulatedCluster::computeProduct(Warpgroup &warpgroup,
                                     PendingProduct &product) {
  const EmulatedProduct &shape = *product.product;
  unsigned elementBytes = bytesOf(shape.aType), depth = rowBytes / elementBytes;
  unsigned perPiece = pieceBytes / elementBytes, columns = shape.columns;
  std::vector<float> a(numRows * depth), b(depth * columns);
  if (shape.hasFragment) {
    // A register has four bytes of a row, and the next four registers' worth of
    // a row follow in the next three threads.
    for (unsigned i = 0; i < product.fragment.size(); ++i) {
      auto [row, column] = elementOf(i / 4, /*index=*/0);
      row += 8 * (i % 2);
      unsigned byte = i / 4 % 4 * 4 + i / 2 % 2 * 16;
      decodeFactor(shape.aType,
                   reinterpret_cast<const char *>(&product.fragment[i]),
                   4 / elementBytes, &a[row * depth + byte / elementBytes], 1);
    }
  } else {
    forEachPiece(shape.a, product.a, numRows,
                 [&](const char *piece, unsigned row, unsigned byte) {
                   decodeFactor(shape.aType, piece, perPiece,
                                &a[row * depth + byte / elementBytes],
                                shape.a.isTransposed ? depth : 1);
                 });
  }
  forEachPiece(shape.b, product.b, columns,
               [&](const char *piece, unsigned column, unsigned byte) {
                 decodeFactor(shape.bType, piece, perPiece,
                              &b[byte / elementBytes * columns + column],
                              shape.b.isTransposed ? 1 : columns);
               });
  if (product.before != 0) {
    auto before = warpgroup.sums.find(product.before);
    product.sum = std::move(before->second);
    warpgroup.sums.erase(before);
  }
  addProduct(product.sum.data(), a.data(), b.data(), numRows, depth, columns);
  warpgroup.sums[product.number] = std::move(product.sum);
  warpgroup.computed.push_back(product.number);
}

void EmulatedCluster::waitForProducts(unsigned number, uint32_t mostPending) {
  Warpgroup &warpgroup = warpgroups[number];
  unsigned first = firstThread(number);
  uint32_t over =
      warpgroup.numGroups - std::min(warpgroup.numGroups, mostPending);
  while (!warpgroup.pending.empty() &&
         warpgroup.pending.front().group <= over) {
    computeProduct(warpgroup, warpgroup.pending.front());
    warpgroup.pending.pop_front();
  }
  for (unsigned thread : llvm::seq(first, first + Warpgroup::numThreads)) {
    const WaitOperands &operands = threads[thread].wait.operands;
    for (unsigned i = 0; i < operands.numRegisters; ++i) {
      uint32_t &bits = operands.registers[i];
      std::optional<Placeholder> one = Placeholder::decode(bits);
      if (!one)
        continue;
      auto sum = warpgroup.sums.find(one->product);
      if (sum == warpgroup.sums.end())
        continue;
      auto [row, column] = elementOf(thread - first, one->index);
      unsigned columns = sum->second.size() / numRows;
      bits = llvm::bit_cast<uint32_t>(sum->second[row * columns + column]);
    }
  }
  for (unsigned warp = 0; warp < warpgroupWarps; ++warp)
    clocks.learn(first / warpSize + warp, warpgroup.component, over);

  // A later wait may still ask for sums that this one has not, but not for ones
  // of long ago.
  constexpr unsigned mostSums = 16;
  while (warpgroup.computed.size() > mostSums) {
    unsigned oldest = warpgroup.computed.front();
    if (warpgroup.findAdding(oldest))
      break;
    warpgroup.sums.erase(oldest);
    warpgroup.computed.pop_front();
  }
}

/// `setmaxnreg` moves registers between the warpgroups of a block. What they
/// have asked for has to fit what the block was launched with.
void EmulatedCluster::setRegisters(unsigned number, const Wait &wait) {
  constexpr unsigned allRegisters = 1 << 16, mostOfThread = 256, unit = 8;
  unsigned ofThread = std::min(allRegisters / blockThreads, mostOfThread);
  unsigned ofBlock = ofThread / unit * unit * blockThreads;
  warpgroups[number].threadRegisters = wait.mask;
  unsigned inBlock = llvm::divideCeil(blockThreads, Warpgroup::numThreads);
  unsigned asked = 0;
  for (const Warpgroup &one :
       llvm::ArrayRef(warpgroups).slice(number / inBlock * inBlock, inBlock))
    asked += one.threadRegisters * Warpgroup::numThreads;
  if (asked > ofBlock)
    fail(siteName(wait.site) + " by " + warpgroupName(number) + " asks for " +
         Twine(wait.mask) + " registers a thread, so that the block's " +
         "warpgroups have asked for " + Twine(asked) + ", but it has " +
         Twine(ofBlock));
}

//===----------------------------------------------------------------------===//
// Uses
//===----------------------------------------------------------------------===//

void EmulatedCluster::reportPlaceholder(unsigned thread,
                                        Placeholder placeholder,
                                        uint32_t site) {
  const Warpgroup &warpgroup = warpgroups[warpgroupOf(thread)];
  const PendingProduct *pending = warpgroup.find(placeholder.product);
  const char *reason = "to which a later product has added";
  if (warpgroup.findAdding(placeholder.product))
    pending = nullptr;
  else if (pending && pending->group > warpgroup.numGroups)
    reason = "which no 'nvvm.wgmma.commit.group.sync.aligned' has added to a "
             "group";
  else if (pending)
    reason = "which no 'tile.wgmma_wait' has waited for";
  else if (warpgroup.sums.count(placeholder.product) != 0)
    reason = "but no 'tile.wgmma_wait' has returned the register";
  fail(threadName(thread) + " reads in " + siteName(site) +
       " a register of the product begun in " +
       siteName(warpgroup.sites[placeholder.product]) + ", " + reason);
}

void EmulatedCluster::checkRegisters(const uint32_t *registers, uint32_t count,
                                     uint32_t site) {
  const Warpgroup &warpgroup = warpgroups[warpgroupOf(running)];
  for (uint32_t i = 0; i < count && failure.empty(); ++i)
    if (std::optional<Placeholder> one = Placeholder::decode(registers[i]))
      if (one->product < warpgroup.sites.size() &&
          warpgroup.sites[one->product] != Warpgroup::noSite)
        reportPlaceholder(running, *one, site);
  if (!failure.empty())
    yield();
}
