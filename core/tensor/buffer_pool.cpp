#include "core/tensor/buffer_pool.h"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include "core/base/aligned_memory.h"

namespace headscope {
namespace {

constexpr std::size_t smallest_class = 256;

// Classes an eighth of a power of two apart: at most 12 % too large, and a text one token longer finds its buffers
// again.
std::size_t size_class(std::size_t bytes) {
  bytes = std::max(bytes, smallest_class);
  const std::size_t step = std::bit_floor(bytes) / 8;
  return (bytes + step - 1) / step * step;
}

float* allocate(std::size_t bytes) {
  return static_cast<float*>(allocate_aligned(bytes));
}

void deallocate(float* data, std::size_t bytes) {
  deallocate_aligned(data, bytes);
}

}  // namespace

struct BufferPool::State {
  mutable std::mutex lock;
  std::map<std::size_t, std::vector<float*>> idle;  // by size class
  std::size_t idle_bytes = 0;
};

// Below the first, the heap is as quick; behind the second, a trace of a long text is dropped, not hoarded.
const BufferPool::Source BufferPool::heap{allocate, deallocate, std::size_t{16} << 10, std::size_t{1} << 30};

BufferPool::BufferPool(const Source& source) : source_(source), state_(std::make_unique<State>()) {}

BufferPool::~BufferPool() {
  drop_idle();
}

void BufferPool::drop_idle() {
  const std::lock_guard lock(state_->lock);
  for (const auto& [bytes, buffers] : state_->idle)
    for (float* data : buffers) source_.deallocate(data, bytes);
  state_->idle.clear();
  state_->idle_bytes = 0;
}

Tensor BufferPool::empty(Shape shape) {
  const std::size_t wanted = static_cast<std::size_t>(shape.size()) * sizeof(float);
  if (wanted < source_.pooled_from) return Tensor::uninitialized(shape);
  std::shared_ptr<float> data = take(wanted);
  if (!data) throw std::bad_alloc();
  const float* const first = data.get();
  return Tensor::borrow(first, shape, std::move(data));
}

std::shared_ptr<float> BufferPool::take(std::size_t wanted) {
  const std::size_t bytes = size_class(wanted);
  float* data = nullptr;
  {
    const std::lock_guard lock(state_->lock);
    const auto found = state_->idle.find(bytes);
    if (found != state_->idle.end() && !found->second.empty()) {
      data = found->second.back();
      found->second.pop_back();
      state_->idle_bytes -= bytes;
    }
  }
  if (!data) data = source_.allocate(bytes);
  if (!data) {
    drop_idle();
    data = source_.allocate(bytes);
  }
  if (!data) return nullptr;
  // The buffer may outlive the pool (a trace outlives the engine): then it goes where it came from.
  return {data, [pool = weak_from_this(), bytes, give = source_.deallocate](float* p) {
            if (const auto alive = pool.lock())
              alive->release(p, bytes);
            else
              give(p, bytes);
          }};
}

void BufferPool::release(float* data, std::size_t bytes) {
  {
    const std::lock_guard lock(state_->lock);
    if (state_->idle_bytes + bytes <= source_.idle_limit) {
      state_->idle[bytes].push_back(data);
      state_->idle_bytes += bytes;
      return;
    }
  }
  source_.deallocate(data, bytes);
}

std::size_t BufferPool::idle_bytes() const {
  const std::lock_guard lock(state_->lock);
  return state_->idle_bytes;
}

}  // namespace headscope
