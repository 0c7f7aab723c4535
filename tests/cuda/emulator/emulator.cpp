#include "emulator.h"

#include <sys/mman.h>

#include <cstdio>
#include <mutex>
#include <vector>

#undef blockIdx
#undef blockDim
#undef gridDim
#undef threadIdx

namespace emulator {

Thread* now = nullptr;
uint3 block_index{};
dim3 block_size, grid_size;

namespace {

constexpr std::size_t most_shared = 232448, behind = 256;
// An odd number of cache lines: ends of stacks that lay a power of two apart would drive each other out of the cache.
constexpr std::size_t stack_bytes = (std::size_t{96} << 10) + 17 * 64;
constexpr int most_threads = 1024;
constexpr char unwritten = static_cast<char>(0xff);  // NaN, as float

struct Warp {
  int arrived = 0, live = 0;
  unsigned int generation = 0;
  char slots[2][32][most_exchanged];  // in turns, so that nobody waits until all have read
};

struct Block {
  std::vector<Warp> warps;
  std::vector<Thread> threads;
  int arrived = 0, live = 0;
  unsigned int generation = 0;
} block;

alignas(128) char shared[most_shared + behind];
void* scheduler;
const std::function<void()>* running;

/// Keeps what a function must keep, and goes on where `to` stopped.
extern "C" void emulator_switch(void** from, void* to);
asm(R"(
.text
emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");

[[noreturn]] void stop(const char* why) {
  std::fprintf(stderr, "emulated card: %s, block %u %u %u\n", why, block_index.x, block_index.y, block_index.z);
  std::abort();
}

void yield() {
  emulator_switch(&now->stack_pointer, scheduler);
}

/// Those who wait are let go once all that still run are there.
template <class Barrier>
void open(Barrier& barrier) {
  if (barrier.live == 0 || barrier.arrived < barrier.live) return;
  barrier.arrived = 0;
  ++barrier.generation;
}

template <class Barrier>
void wait_at(Barrier& barrier, Thread::Wait kind) {
  const unsigned int generation = barrier.generation;
  ++barrier.arrived;
  open(barrier);
  if (barrier.generation != generation) return;
  now->wait = kind;
  now->generation = generation;
  yield();
}

Warp& warp_of(const Thread& thread) {
  return block.warps[static_cast<std::size_t>(thread.warp)];
}

void begin() {
  (*running)();
  now->done = true;
  --warp_of(*now).live;
  --block.live;
  open(warp_of(*now));
  open(block);
  yield();
  std::abort();
}

bool waits(const Thread& thread) {
  switch (thread.wait) {
    case Thread::Wait::warp:
      return thread.generation == warp_of(thread).generation;
    case Thread::Wait::block:
      return thread.generation == block.generation;
    case Thread::Wait::none:
      break;
  }
  return false;
}

void make_threads(dim3 size, char* stacks) {
  const auto count = static_cast<int>(size.x * size.y * size.z);
  block.threads.assign(static_cast<std::size_t>(count), {});
  block.warps.assign(static_cast<std::size_t>(count + 31) / 32, {});
  block.arrived = 0;
  block.live = count;
  block.generation = 0;
  for (int i = 0; i < count; ++i) {
    Thread& thread = block.threads[static_cast<std::size_t>(i)];
    const auto n = static_cast<unsigned int>(i);
    thread.index = {n % size.x, n / size.x % size.y, n / (size.x * size.y)};
    thread.warp = i / 32;
    thread.lane = i % 32;
    ++warp_of(thread).live;
    auto** top = reinterpret_cast<void**>(stacks + static_cast<std::size_t>(i + 1) * stack_bytes);
    *--top = nullptr;  // whom it would return to; so aligned, it begins as a function called does
    *--top = reinterpret_cast<void*>(&begin);
    for (int kept = 0; kept < 6; ++kept) *--top = nullptr;
    thread.stack_pointer = top;
  }
}

void run_block() {
  while (block.live > 0) {
    bool moved = false;
    for (Thread& thread : block.threads) {
      if (thread.done || waits(thread)) continue;
      thread.wait = Thread::Wait::none;
      now = &thread;
      emulator_switch(&scheduler, thread.stack_pointer);
      moved = true;
    }
    if (!moved) stop("threads wait for each other");
  }
}

}  // namespace

char* shared_memory() {
  return shared;
}

void wait_for_warp() {
  wait_at(warp_of(*now), Thread::Wait::warp);
}

void wait_for_block() {
  wait_at(block, Thread::Wait::block);
}

Slots exchange(const void* mine, std::size_t bytes) {
  Warp& warp = warp_of(*now);
  const Slots slots = warp.slots[warp.generation % 2];
  std::memcpy(slots[now->lane], mine, bytes);
  wait_for_warp();
  return slots;
}

void launch(const Grid& grid, const std::function<void()>& body) {
  static std::mutex lock;
  const std::lock_guard hold(lock);
  static char* const stacks = static_cast<char*>(mmap(nullptr, stack_bytes * most_threads, PROT_READ | PROT_WRITE,
                                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  const unsigned int threads = grid.threads.x * grid.threads.y * grid.threads.z;
  if (threads == 0 || threads > most_threads || grid.shared > most_shared || grid.blocks.x == 0 || grid.blocks.y == 0 ||
      grid.blocks.y > 65535 || grid.blocks.z == 0 || grid.blocks.z > 65535)
    stop("a launch that no card takes");
  block_size = grid.threads;
  grid_size = grid.blocks;
  running = &body;
  for (unsigned int z = 0; z < grid.blocks.z; ++z)
    for (unsigned int y = 0; y < grid.blocks.y; ++y)
      for (unsigned int x = 0; x < grid.blocks.x; ++x) {
        block_index = {x, y, z};
        std::memset(shared, unwritten, grid.shared + behind);
        make_threads(grid.threads, stacks);
        run_block();
        for (std::size_t i = 0; i < behind; ++i)
          if (shared[grid.shared + i] != unwritten) stop("shared memory was written beyond its end");
      }
  now = nullptr;
}

}  // namespace emulator
