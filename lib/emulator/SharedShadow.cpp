//===- SharedShadow.cpp - Data races in shared memory ---------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/emulator/SharedShadow.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace bastile;

static constexpr unsigned warpSize = 32;
/// Threads copy multiples of so many bytes.
static constexpr uint64_t wordBytes = 4;

void SharedShadow::reset(uint64_t bytes, unsigned numThreads) {
  bytes = llvm::alignTo(bytes, pieceBytes);
  if (shadow.size() != bytes) {
    shadow.assign(bytes, Byte());
    isTouched.assign(bytes / pieceBytes, false);
  }
  // Most of a large memory is touched by engines only.
  for (uint64_t piece = 0; piece < isTouched.size(); ++piece)
    if (std::exchange(isTouched[piece], false))
      std::fill_n(shadow.begin() + piece * pieceBytes, pieceBytes, Byte());
  pieces.assign(bytes / pieceBytes, Piece());
  fences.assign(numThreads, 0);
  copying.assign(bytes / wordBytes, 0);
}

void SharedShadow::beginCopy(unsigned thread, uint64_t offset, uint64_t bytes) {
  std::fill_n(copying.begin() + offset / wordBytes, bytes / wordBytes,
              static_cast<uint16_t>(thread + 1));
}

void SharedShadow::endCopy(uint64_t offset, uint64_t bytes) {
  std::fill_n(copying.begin() + offset / wordBytes, bytes / wordBytes,
              uint16_t(0));
}

std::optional<SharedShadow::Race> SharedShadow::findCopy(uint64_t offset,
                                                         uint64_t bytes) const {
  for (uint64_t word = offset / wordBytes; word * wordBytes < offset + bytes;
       ++word)
    if (copying[word] != 0)
      return Race{"began to write",
                  unsigned(copying[word] - 1),
                  std::max(offset, word * wordBytes),
                  /*isEngine=*/false,
                  /*lacksFence=*/false,
                  /*isCopy=*/true};
  return std::nullopt;
}

SharedShadow::Access SharedShadow::now(unsigned thread) const {
  return {clocks.step(thread / warpSize), static_cast<uint16_t>(thread)};
}

bool SharedShadow::isConcurrent(const Access &access, unsigned thread) const {
  if (access.stamp == 0 || access.thread == thread)
    return false;
  unsigned warp = thread / warpSize, other = access.thread / warpSize;
  // A warp learns of another warp's step at a barrier; its own step is over
  // only once the next one has begun.
  if (warp == other)
    return access.stamp == clocks.step(warp);
  return access.stamp > stepOf(clocks.of(warp), other);
}

bool SharedShadow::isConcurrent(const Access &access,
                                const Engine &engine) const {
  if (access.stamp == 0 || access.thread == engine.thread)
    return false;
  unsigned other = access.thread / warpSize;
  if (engine.thread && *engine.thread / warpSize == other)
    return access.stamp == clocks.step(other);
  return access.stamp > stepOf(engine.known, other);
}

bool SharedShadow::isFenced(const Access &writer, const Engine &engine) const {
  if (writer.stamp == 0)
    return true;
  unsigned fence = fences[writer.thread];
  return fence != 0 && writer.stamp <= stepOf(engine.known, fence);
}

void SharedShadow::fenceProxies(unsigned thread) {
  unsigned &fence = fences[thread];
  if (fence == 0)
    fence = clocks.addComponent();
  unsigned warp = thread / warpSize;
  clocks.learn(warp, fence, clocks.step(warp));
}

std::optional<SharedShadow::Race> SharedShadow::findEngine(unsigned thread,
                                                           uint64_t offset,
                                                           uint64_t bytes,
                                                           bool isWrite) const {
  llvm::ArrayRef<uint32_t> known = clocks.of(thread / warpSize);
  for (uint64_t piece = offset / pieceBytes;
       piece * pieceBytes < offset + bytes; ++piece) {
    uint64_t first = std::max(offset, piece * pieceBytes);
    const Piece &its = pieces[piece];
    if (isUnknown(its.writer, known))
      return Race{"wrote", its.writer.component, first, /*isEngine=*/true};
    for (const EngineAccess &reader : its.readers)
      if (isWrite && isUnknown(reader, known))
        return Race{"read", reader.component, first, /*isEngine=*/true};
  }
  return std::nullopt;
}

std::optional<SharedShadow::Race>
SharedShadow::read(unsigned thread, uint64_t offset, uint64_t bytes) {
  std::optional<Race> race = findCopy(offset, bytes);
  if (!race)
    race = findEngine(thread, offset, bytes, /*isWrite=*/false);
  for (uint64_t i = offset; i < offset + bytes; ++i) {
    Byte &byte = shadow[i];
    if (!race && isConcurrent(byte.writer, thread))
      race = Race{"wrote", byte.writer.thread, i};
    unsigned slot = isConcurrent(byte.readers[0], thread) ? 1 : 0;
    byte.readers[slot] = now(thread);
    isTouched[i / pieceBytes] = true;
  }
  return race;
}

std::optional<SharedShadow::Race>
SharedShadow::write(unsigned thread, uint64_t offset, uint64_t bytes) {
  std::optional<Race> race = findCopy(offset, bytes);
  if (!race)
    race = findEngine(thread, offset, bytes, /*isWrite=*/true);
  // What a thread writes after its fence is not fenced, so that it belongs to a
  // later step than the fence.
  unsigned warp = thread / warpSize, fence = fences[thread];
  if (fence != 0 && stepOf(clocks.of(warp), fence) == clocks.step(warp))
    clocks.advance(warp);
  for (uint64_t i = offset; i < offset + bytes; ++i) {
    Byte &byte = shadow[i];
    if (!race && isConcurrent(byte.writer, thread))
      race = Race{"wrote", byte.writer.thread, i};
    for (const Access &reader : byte.readers)
      if (!race && isConcurrent(reader, thread))
        race = Race{"read", reader.thread, i};
    byte.writer = now(thread);
    isTouched[i / pieceBytes] = true;
  }
  return race;
}

std::optional<SharedShadow::Race> SharedShadow::findThread(const Engine &engine,
                                                           uint64_t piece,
                                                           bool isWrite) const {
  if (!isTouched[piece])
    return std::nullopt;
  for (uint64_t i = piece * pieceBytes; i < (piece + 1) * pieceBytes; ++i) {
    const Byte &byte = shadow[i];
    if (isConcurrent(byte.writer, engine))
      return Race{"wrote", byte.writer.thread, i};
    for (const Access &reader : byte.readers)
      if (isWrite && isConcurrent(reader, engine))
        return Race{"read", reader.thread, i};
    if (!isFenced(byte.writer, engine))
      return Race{"wrote", byte.writer.thread, i, /*isEngine=*/false,
                  /*lacksFence=*/true};
  }
  return std::nullopt;
}

std::optional<SharedShadow::Race>
SharedShadow::read(const Engine &engine, uint64_t offset, uint64_t bytes) {
  std::optional<Race> race = findCopy(offset, bytes);
  for (uint64_t piece = offset / pieceBytes;
       piece * pieceBytes < offset + bytes; ++piece) {
    Piece &its = pieces[piece];
    if (!race && isUnknown(its.writer, engine.known))
      race = Race{"wrote", its.writer.component, piece * pieceBytes,
                  /*isEngine=*/true};
    if (!race)
      race = findThread(engine, piece, /*isWrite=*/false);
    // A reader that is known to be over makes room.
    EngineAccess *slot = its.readers;
    for (EngineAccess &reader : its.readers) {
      bool isOwn = reader.component == engine.component;
      if (isOwn || !isUnknown(reader, engine.known))
        slot = &reader;
      if (isOwn)
        break;
    }
    *slot = {engine.step, engine.component};
  }
  return race;
}

std::optional<SharedShadow::Race>
SharedShadow::write(const Engine &engine, uint64_t offset, uint64_t bytes) {
  std::optional<Race> race = findCopy(offset, bytes);
  for (uint64_t piece = offset / pieceBytes;
       piece * pieceBytes < offset + bytes; ++piece) {
    Piece &its = pieces[piece];
    if (!race && isUnknown(its.writer, engine.known))
      race = Race{"wrote", its.writer.component, piece * pieceBytes,
                  /*isEngine=*/true};
    for (const EngineAccess &reader : its.readers)
      if (!race && isUnknown(reader, engine.known))
        race = Race{"read", reader.component, piece * pieceBytes,
                    /*isEngine=*/true};
    if (!race)
      race = findThread(engine, piece, /*isWrite=*/true);
    its.writer = {engine.step, engine.component};
  }
  return race;
}
