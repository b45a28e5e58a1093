//===- EmulatorSymbols.cpp - What emulated kernels call -------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/emulator/EmulatorSymbols.h"
#include "lib/emulator/EmulatedCluster.h"
#include "lib/emulator/rewrite/EmulatorCalls.h"
#include "llvm/ADT/APFloat.h"

using namespace bastile;

static int32_t readRegister(int32_t name) {
  return EmulatedCluster::current()->readRegister(
      static_cast<EmulatedRegister>(name));
}

static void *sharedMemory() {
  return EmulatedCluster::current()->sharedMemory();
}

static void *mapShared(void *address, uint32_t rank, uint32_t site) {
  return EmulatedCluster::current()->mapShared(static_cast<char *>(address),
                                               rank, site);
}

static void access(void *address, uint64_t bytes, uint32_t alignment,
                   int32_t access, uint32_t site) {
  EmulatedCluster::current()->access(reinterpret_cast<uintptr_t>(address),
                                     bytes, alignment,
                                     static_cast<EmulatedAccess>(access), site);
}

static void maskedAccess(void *address, uint64_t lanes, uint32_t laneBytes,
                         uint32_t alignment, int32_t access, uint32_t site) {
  auto begin = reinterpret_cast<uintptr_t>(address);
  for (unsigned lane = 0; lanes != 0; ++lane, lanes >>= 1)
    if (lanes & 1)
      // Only the first lane has the alignment of the whole vector.
      EmulatedCluster::current()->access(
          begin + lane * laneBytes, laneBytes, lane == 0 ? alignment : 1,
          static_cast<EmulatedAccess>(access), site);
}

static uint64_t shuffle(int32_t kind, uint32_t mask, uint32_t value,
                        uint32_t offset, uint32_t clamp, uint32_t site) {
  return EmulatedCluster::current()->wait(
      {EmulatedCluster::Wait::Shuffle, kind, mask, value, offset, clamp, site});
}

static uint32_t vote(int32_t kind, uint32_t mask, uint32_t predicate,
                     uint32_t site) {
  return EmulatedCluster::current()->wait(
      {EmulatedCluster::Wait::Vote, kind, mask, predicate, 0, 0, site});
}

static void warpBarrier(uint32_t mask, uint32_t site) {
  EmulatedCluster::current()->wait(
      {EmulatedCluster::Wait::WarpBarrier, 0, mask, 0, 0, 0, site});
}

static uint32_t barrier(uint32_t id, uint32_t numThreads, int32_t reduction,
                        uint32_t predicate, uint32_t site) {
  return EmulatedCluster::current()->wait({EmulatedCluster::Wait::Barrier,
                                           reduction, id, predicate, 0,
                                           numThreads, site});
}

static void clusterArrive(int32_t releases, uint32_t site) {
  EmulatedCluster::current()->wait(
      {EmulatedCluster::Wait::ClusterArrive, releases, 0, 0, 0, 0, site});
}

static void clusterWait(uint32_t site) {
  EmulatedCluster::current()->wait(
      {EmulatedCluster::Wait::ClusterWait, 0, 0, 0, 0, 0, site});
}

static void initBarrier(char *address, uint32_t count, uint32_t site) {
  EmulatedCluster::current()->initBarrier(address, count, site);
}

static void expectMessages(char *address, uint32_t arrivals, uint32_t bytes,
                           uint32_t site) {
  EmulatedCluster::current()->expectMessages(address, arrivals, bytes, site);
}

static void sendMessage(char *address, uint32_t bits, char *barrier,
                        uint32_t site) {
  EmulatedCluster::current()->sendMessage(address, bits, barrier, site);
}

static void sendUnit(char *address, uint32_t first, uint32_t second,
                     uint32_t third, uint32_t fourth, char *barrier,
                     uint32_t site) {
  EmulatedCluster::current()->sendUnit(address, {first, second, third, fourth},
                                       barrier, site);
}

static void waitForMessages(char *address, uint32_t parity, uint32_t site) {
  EmulatedCluster::current()->waitForMessages(address, parity, site);
}

static void startCopy(char *to, char *from, uint32_t bytes,
                      uint32_t sourceBytes, uint32_t site) {
  EmulatedCluster::current()->startCopy(to, from, bytes, sourceBytes, site);
}

static void closeCopies() { EmulatedCluster::current()->closeCopies(); }

static void waitForCopies(uint32_t mostPending) {
  EmulatedCluster::current()->waitForCopies(mostPending);
}

static void arriveAtBarrier(uint32_t id, uint32_t numThreads, uint32_t site) {
  EmulatedCluster::current()->wait(
      {EmulatedCluster::Wait::BarrierArrive, -1, id, 0, 0, numThreads, site});
}

static uint32_t elect(uint32_t mask, uint32_t site) {
  return EmulatedCluster::current()->wait(
      {EmulatedCluster::Wait::Elect, 0, mask, 0, 0, 0, site});
}

static void fenceBarriers() { EmulatedCluster::current()->fenceBarriers(); }

static void fenceProxies() { EmulatedCluster::current()->fenceProxies(); }

static void warpgroupStep(int32_t step, uint32_t operand, uint32_t *registers,
                          uint32_t count, uint32_t site) {
  EmulatedCluster::current()->wait({EmulatedCluster::Wait::Warpgroup,
                                    step,
                                    operand,
                                    0,
                                    0,
                                    0,
                                    site,
                                    {registers, count}});
}

static void beginProduct(uint32_t product, uint32_t *registers,
                         uint32_t *fragment, char *a, char *b, uint32_t site) {
  EmulatedCluster::current()->wait({EmulatedCluster::Wait::Warpgroup,
                                    int32_t(WarpgroupStep::Begin),
                                    product,
                                    0,
                                    0,
                                    0,
                                    site,
                                    {registers, 0, fragment, a, b}});
}

static void multiplyMatrices(uint32_t types, uint32_t rowBytes, uint32_t *sums,
                             uint32_t *factors, uint32_t site) {
  EmulatedCluster::current()->wait({EmulatedCluster::Wait::Matrix,
                                    int32_t(MatrixStep::Multiply),
                                    ~uint32_t(0),
                                    types,
                                    rowBytes,
                                    0,
                                    site,
                                    {sums, 0, factors}});
}

static void moveMatrices(int32_t step, char *address, uint32_t *registers,
                         uint32_t count, uint32_t site) {
  EmulatedCluster::current()->wait({EmulatedCluster::Wait::Matrix,
                                    step,
                                    ~uint32_t(0),
                                    0,
                                    0,
                                    0,
                                    site,
                                    {registers, count, nullptr, address}});
}

static void checkRegisters(uint32_t *registers, uint32_t count, uint32_t site) {
  EmulatedCluster::current()->checkRegisters(registers, count, site);
}

static void loadTensor(char *to, const void *map, const int32_t *coordinates,
                       uint32_t rank, char *barrier, int32_t mask,
                       uint32_t site) {
  EmulatedCluster::current()->loadTensor(to, map, coordinates, rank, barrier,
                                         mask, site);
}

static void loadBytes(char *to, const char *from, char *barrier, uint32_t bytes,
                      int32_t mask, uint32_t site) {
  EmulatedCluster::current()->loadBytes(to, from, barrier, bytes, mask, site);
}

static void storeTensor(const void *map, char *from, const int32_t *coordinates,
                        uint32_t rank, int32_t adds, uint32_t site) {
  EmulatedCluster::current()->storeTensor(map, from, coordinates, rank,
                                          adds != 0, site);
}

static void closeStores() { EmulatedCluster::current()->closeStores(); }

static void waitForStores(uint32_t mostPending, int32_t isRead) {
  EmulatedCluster::current()->waitForStores(mostPending, isRead != 0);
}

static void pollCount(char *address, uint32_t count, uint32_t site) {
  EmulatedCluster::current()->pollCount(address, count, site);
}

static void publishCount(char *address, uint32_t count, uint32_t site) {
  EmulatedCluster::current()->publishCount(address, count, site);
}

static float approximate(int32_t function, int32_t flushes, float x, float y) {
  return EmulatedCluster::current()->approximate(function, flushes, x, y);
}

static const llvm::fltSemantics &float8(int32_t isE4M3) {
  return isE4M3 ? llvm::APFloat::Float8E4M3FN() : llvm::APFloat::Float8E5M2();
}

static uint32_t truncateToF8(int32_t isE4M3, float value) {
  const llvm::fltSemantics &type = float8(isE4M3);
  bool losesInfo = false;
  llvm::APFloat largest = llvm::APFloat::getLargest(type);
  llvm::APFloat number(value), bound = largest;
  bound.convert(number.getSemantics(), llvm::APFloat::rmNearestTiesToEven,
                &losesInfo);
  bool isNegative = number.isNegative();
  if (number.isNaN())
    return 0x7f;
  number.clearSign();
  if (number > bound)
    number = bound;
  number.convert(type, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return number.bitcastToAPInt().getZExtValue() | (isNegative ? 0x80 : 0);
}

static float extendF8(int32_t isE4M3, uint32_t code) {
  llvm::APFloat number(float8(isE4M3), llvm::APInt(8, code & 0xff));
  bool losesInfo = false;
  number.convert(llvm::APFloat::IEEEsingle(),
                 llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return number.convertToFloat();
}

llvm::ArrayRef<JitSymbol> bastile::getEmulatorSymbols() {
  namespace calls = emulator_calls;
  static const JitSymbol symbols[] = {
      {calls::readRegister, reinterpret_cast<void *>(&readRegister)},
      {calls::sharedMemory, reinterpret_cast<void *>(&sharedMemory)},
      {calls::mapShared, reinterpret_cast<void *>(&mapShared)},
      {calls::access, reinterpret_cast<void *>(&access)},
      {calls::maskedAccess, reinterpret_cast<void *>(&maskedAccess)},
      {calls::shuffle, reinterpret_cast<void *>(&shuffle)},
      {calls::vote, reinterpret_cast<void *>(&vote)},
      {calls::warpBarrier, reinterpret_cast<void *>(&warpBarrier)},
      {calls::barrier, reinterpret_cast<void *>(&barrier)},
      {calls::clusterArrive, reinterpret_cast<void *>(&clusterArrive)},
      {calls::clusterWait, reinterpret_cast<void *>(&clusterWait)},
      {calls::initBarrier, reinterpret_cast<void *>(&initBarrier)},
      {calls::expectMessages, reinterpret_cast<void *>(&expectMessages)},
      {calls::sendMessage, reinterpret_cast<void *>(&sendMessage)},
      {calls::sendUnit, reinterpret_cast<void *>(&sendUnit)},
      {calls::waitForMessages, reinterpret_cast<void *>(&waitForMessages)},
      {calls::startCopy, reinterpret_cast<void *>(&startCopy)},
      {calls::closeCopies, reinterpret_cast<void *>(&closeCopies)},
      {calls::waitForCopies, reinterpret_cast<void *>(&waitForCopies)},
      {calls::arriveAtBarrier, reinterpret_cast<void *>(&arriveAtBarrier)},
      {calls::elect, reinterpret_cast<void *>(&elect)},
      {calls::fenceBarriers, reinterpret_cast<void *>(&fenceBarriers)},
      {calls::fenceProxies, reinterpret_cast<void *>(&fenceProxies)},
      {calls::warpgroupStep, reinterpret_cast<void *>(&warpgroupStep)},
      {calls::beginProduct, reinterpret_cast<void *>(&beginProduct)},
      {calls::multiplyMatrices, reinterpret_cast<void *>(&multiplyMatrices)},
      {calls::moveMatrices, reinterpret_cast<void *>(&moveMatrices)},
      {calls::checkRegisters, reinterpret_cast<void *>(&checkRegisters)},
      {calls::loadTensor, reinterpret_cast<void *>(&loadTensor)},
      {calls::loadBytes, reinterpret_cast<void *>(&loadBytes)},
      {calls::storeTensor, reinterpret_cast<void *>(&storeTensor)},
      {calls::closeStores, reinterpret_cast<void *>(&closeStores)},
      {calls::waitForStores, reinterpret_cast<void *>(&waitForStores)},
      {calls::pollCount, reinterpret_cast<void *>(&pollCount)},
      {calls::publishCount, reinterpret_cast<void *>(&publishCount)},
      {calls::approximate, reinterpret_cast<void *>(&approximate)},
      {calls::truncateToF8, reinterpret_cast<void *>(&truncateToF8)},
      {calls::extendF8, reinterpret_cast<void *>(&extendF8)},
  };
  return symbols;
}
