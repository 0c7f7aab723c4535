#pragma once
// Storage for the tensors of a pass. A large buffer that is no longer referenced is kept for the next request of its
// size class: fresh pages cost more than the arithmetic on them, and the heap tidies itself up whenever 64 KB or more
// are freed. Small ones go to the ordinary heap. Thread-safe.

#include <memory>

#include "core/tensor/tensor.h"

namespace headscope {

class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  static std::shared_ptr<BufferPool> create() { return std::shared_ptr<BufferPool>(new BufferPool()); }
  ~BufferPool();
  Tensor empty(Shape shape);
  /// Bytes waiting to be used again.
  std::size_t idle_bytes() const;

 private:
  BufferPool();
  void release(float* data, std::size_t bytes);
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headscope
