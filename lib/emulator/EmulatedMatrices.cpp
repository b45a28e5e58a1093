//===- EmulatedMatrices.cpp - Matrices of a warp --------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Products of small matrices whose elements the lanes of a warp hold, and their
// loads and stores. The last lane to come does what all have come for.
//
//===----------------------------------------------------------------------===//

#include "lib/emulator/EmulatedCluster.h"
#include "lib/emulator/Factors.h"
#include "llvm/ADT/bit.h"
#include <cstring>

using namespace bastile;

static constexpr unsigned warpSize = 32;
static constexpr unsigned wordBytes = sizeof(uint32_t);
/// A matrix that is loaded or stored has eight rows of as many bytes.
static constexpr unsigned matrixRows = 8, matrixRowBytes = 16;

void EmulatedCluster::completeMatrixStep(unsigned warp) {
  const Wait &wait = threads[warp * warpSize].wait;
  for (unsigned thread : warpThreads(warp))
    if (threads[thread].wait.site != wait.site)
      return fail("divergence: " + threadName(warp * warpSize) + " is in " +
                  siteName(wait.site) + ", " + threadName(thread) +
                  " of the same warp in " +
                  siteName(threads[thread].wait.site));
  switch (static_cast<MatrixStep>(wait.variant)) {
  case MatrixStep::Multiply:
    return multiplyMatrices(warp);
  case MatrixStep::Load:
  case MatrixStep::LoadTransposed:
  case MatrixStep::Store:
  case MatrixStep::StoreTransposed:
    return moveMatrices(warp);
  }
}

/// The sums have 16 rows and 8 columns. A lane's registers have four bytes of a
/// row of a factor each, of the first factor in turn for two rows.
void EmulatedCluster::multiplyMatrices(unsigned warp) {
  constexpr unsigned rows = 16, columns = 8, numSums = 4;
  const Wait &wait = threads[warp * warpSize].wait;
  const auto [aType, bType] = splitFactorTypes(wait.value);
  unsigned elementBytes = bytesOf(aType), rowBytes = wait.offset;
  unsigned depth = rowBytes / elementBytes, perWord = wordBytes / elementBytes;
  unsigned numA = 2 * rowBytes / matrixRowBytes, numB = numA / 2;
  std::vector<float> a(rows * depth), b(depth * columns), sum(rows * columns);
  auto sumAt = [&](unsigned lane, unsigned index) -> float & {
    return sum[(lane / 4 + 8 * (index / 2)) * columns + lane % 4 * 2 +
               index % 2];
  };
  auto decode = [&](FactorType type, const uint32_t &word, float *to,
                    unsigned stride) {
    decodeFactor(type, reinterpret_cast<const char *>(&word), perWord, to,
                 stride);
  };
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    const WaitOperands &own = threads[warp * warpSize + lane].wait.operands;
    unsigned first = lane % 4 * perWord;
    for (unsigned i = 0; i < numA; ++i)
      decode(aType, own.fragment[i],
             &a[(lane / 4 + 8 * (i % 2)) * depth + first + i / 2 * 4 * perWord],
             1);
    for (unsigned i = 0; i < numB; ++i)
      decode(bType, own.fragment[numA + i],
             &b[(first + i * 4 * perWord) * columns + lane / 4], columns);
    for (unsigned i = 0; i < numSums; ++i)
      sumAt(lane, i) = llvm::bit_cast<float>(own.registers[i]);
  }
  addProduct(sum.data(), a.data(), b.data(), rows, depth, columns);
  for (unsigned lane = 0; lane < warpSize; ++lane)
    for (unsigned i = 0; i < numSums; ++i)
      threads[warp * warpSize + lane].wait.operands.registers[i] =
          llvm::bit_cast<uint32_t>(sumAt(lane, i));
}

/// Loads or stores up to four matrices. Lane l has the address of row l % 8 of
/// matrix l / 8, and in register m two elements of matrix m: of row l / 4 or,
/// of transposed matrices, of that column.
void EmulatedCluster::moveMatrices(unsigned warp) {
  const Wait &wait = threads[warp * warpSize].wait;
  auto step = static_cast<MatrixStep>(wait.variant);
  bool isLoad = step == MatrixStep::Load || step == MatrixStep::LoadTransposed;
  bool isTransposed =
      step == MatrixStep::LoadTransposed || step == MatrixStep::StoreTransposed;
  constexpr unsigned elementBytes = 2, perWord = wordBytes / elementBytes;
  unsigned first = warp * warpSize, last = running;
  for (unsigned i = 0; i < wait.operands.numRegisters * matrixRows; ++i) {
    // The lane that has the address counts as the one that accesses the row.
    running = first + i;
    checkAccess(reinterpret_cast<uintptr_t>(threads[running].wait.operands.a),
                matrixRowBytes, matrixRowBytes,
                isLoad ? EmulatedAccess::Load : EmulatedAccess::Store,
                wait.site);
    if (!failure.empty())
      return;
  }
  running = last;
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    uint32_t *registers = threads[first + lane].wait.operands.registers;
    for (unsigned matrix = 0; matrix < wait.operands.numRegisters; ++matrix)
      for (unsigned i = 0; i < perWord; ++i) {
        unsigned row = lane / 4, column = lane % 4 * perWord + i;
        if (isTransposed)
          std::swap(row, column);
        char *element =
            threads[first + matrix * matrixRows + row].wait.operands.a +
            column * elementBytes;
        char *part =
            reinterpret_cast<char *>(&registers[matrix]) + i * elementBytes;
        std::memcpy(isLoad ? part : element, isLoad ? element : part,
                    elementBytes);
      }
  }
}
