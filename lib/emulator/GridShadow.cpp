//===- GridShadow.cpp - Data races between blocks of a grid ---------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/emulator/GridShadow.h"

using namespace bastile;

GridShadow::GridShadow(const std::vector<EmulatedBuffer> &buffers) {
  for (const EmulatedBuffer &buffer : buffers)
    if (buffer.isWritable)
      shadows.push_back(
          {&buffer, std::vector<Piece>(buffer.bytes / pieceBytes + 1)});
}

std::optional<GridShadow::Race> GridShadow::note(const Access &now,
                                                 uintptr_t address,
                                                 uint64_t bytes, bool isWrite,
                                                 Knows knows) {
  for (Buffer &shadow : shadows) {
    const uint64_t offset = address - shadow.buffer->begin;
    if (address < shadow.buffer->begin || offset >= shadow.buffer->bytes)
      continue;
    auto isRace = [&](const Access &earlier) {
      return earlier.step != 0 && !knows(earlier);
    };
    const uint64_t end = offset + bytes;
    for (uint64_t at = offset / pieceBytes; at * pieceBytes < end; ++at) {
      Piece &piece = shadow.pieces[at];
      if (isRace(piece.writer))
        return Race{shadow.buffer, at * pieceBytes, "wrote",
                    piece.writer.by.cluster};
      if (isWrite && isRace(piece.reader))
        return Race{shadow.buffer, at * pieceBytes, "read",
                    piece.reader.by.cluster};
      (isWrite ? piece.writer : piece.reader) = now;
    }
  }
  return std::nullopt;
}
