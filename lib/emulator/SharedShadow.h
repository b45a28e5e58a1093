//===- SharedShadow.h - Data races in shared memory -------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Remembers for each byte of an emulated cluster's shared memory which threads
// last read and wrote it, and for each 16 bytes which engines did, such as a
// warpgroup's tensor cores; tells whether a barrier or a wait lies between two
// accesses.
//
// Order is kept by the vector clocks of the warps: barriers take whole warps,
// and two lanes of one warp are ordered by a step of the warp's own component.
// An engine's access has the step at which it completes, and is over for those
// who know that step of the engine's component.
//
// Engines reach memory by the async proxy, threads by the generic one. A
// thread's write is seen by an engine only if the thread has run a fence
// between the two proxies after it. A thread that runs such fences has a
// component for them, whose step is that of its warp at the fence.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_EMULATOR_SHAREDSHADOW_H
#define BASTILE_LIB_EMULATOR_SHAREDSHADOW_H

#include "lib/emulator/VectorClocks.h"
#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <optional>
#include <vector>

namespace bastile {

class SharedShadow {
public:
  struct Race {
    /// The earlier access, as a verb.
    const char *earlier;
    /// The thread of the earlier access or, if `isEngine`, the component.
    unsigned other;
    uint64_t offset;
    bool isEngine = false;
    /// The accesses are ordered, but no fence between the proxies lies in
    /// between.
    bool lacksFence = false;
    /// The earlier access is a copy that its thread has not waited for.
    bool isCopy = false;
  };
  /// An access by an engine.
  struct Engine {
    unsigned component;
    uint32_t step;
    /// What those know who began the access.
    llvm::ArrayRef<uint32_t> known;
    /// The thread that began it; none if all threads of a warpgroup did.
    std::optional<unsigned> thread;
  };
  /// Engines access multiples of so many bytes.
  static constexpr uint64_t pieceBytes = 16;

  explicit SharedShadow(VectorClocks &clocks) : clocks(clocks) {}

  /// Forgets all accesses, for a new block.
  void reset(uint64_t bytes, unsigned numThreads);

  /// Notes an access; returns the first byte in a race with another thread or
  /// an engine, if any.
  std::optional<Race> read(unsigned thread, uint64_t offset, uint64_t bytes);
  std::optional<Race> write(unsigned thread, uint64_t offset, uint64_t bytes);
  std::optional<Race> read(const Engine &engine, uint64_t offset,
                           uint64_t bytes);
  std::optional<Race> write(const Engine &engine, uint64_t offset,
                            uint64_t bytes);

  /// Notes that a thread has run a fence between the generic and the async
  /// proxy.
  void fenceProxies(unsigned thread);

  /// Notes that a copy into these bytes, whole words, is under way, and that
  /// its thread has waited for it. In between, every access is in a race.
  void beginCopy(unsigned thread, uint64_t offset, uint64_t bytes);
  void endCopy(uint64_t offset, uint64_t bytes);

private:
  struct Access {
    uint32_t stamp = 0; // 0: never
    uint16_t thread = 0;
  };
  struct Byte {
    Access writer;
    // Two readers that are not ordered: at least one of them is not the thread
    // that writes next.
    Access readers[2];
  };
  struct EngineAccess {
    uint32_t step = 0; // 0: never
    uint32_t component = 0;
  };
  struct Piece {
    EngineAccess writer;
    // If more engines read the same bytes at a time than three, such as four
    // warpgroups, the races of some of them may be missed.
    EngineAccess readers[3];
  };

  /// Whether `access` may happen at the same time as an access of `thread` now.
  bool isConcurrent(const Access &access, unsigned thread) const;
  /// Whether it may happen at the same time as one of an engine.
  bool isConcurrent(const Access &access, const Engine &engine) const;
  static bool isUnknown(const EngineAccess &access,
                        llvm::ArrayRef<uint32_t> known) {
    return access.step > stepOf(known, access.component);
  }
  bool isFenced(const Access &writer, const Engine &engine) const;
  Access now(unsigned thread) const;
  /// The first copy under way into these bytes.
  std::optional<Race> findCopy(uint64_t offset, uint64_t bytes) const;
  /// The first engine in a race with an access of a thread.
  std::optional<Race> findEngine(unsigned thread, uint64_t offset,
                                 uint64_t bytes, bool isWrite) const;
  /// The first thread in a race with an engine's access to a piece.
  std::optional<Race> findThread(const Engine &engine, uint64_t piece,
                                 bool isWrite) const;

  VectorClocks &clocks;
  std::vector<Byte> shadow;
  std::vector<Piece> pieces;
  // Whether a thread has touched a piece.
  std::vector<uint8_t> isTouched;
  // The components of threads' fences; 0 for none, as that is a warp's.
  std::vector<unsigned> fences;
  // For each word, the thread whose copy is under way, plus 1; 0 for none.
  std::vector<uint16_t> copying;
};

} // namespace bastile

#endif // BASTILE_LIB_EMULATOR_SHAREDSHADOW_H
