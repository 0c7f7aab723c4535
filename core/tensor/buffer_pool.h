#pragma once
// Storage for the tensors of a pass. A large buffer that is no longer referenced is kept for the next request of its
// size class: fresh pages cost more than the arithmetic on them, and the heap tidies itself up whenever 64 KB or more
// are freed. Small ones go to the ordinary heap. The same for memory of other kinds, which comes from a Source.
// Thread-safe.

#include <cstddef>
#include <memory>

#include "core/tensor/tensor.h"

namespace headscope {

class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  /// Where memory comes from and goes to.
  struct Source {
    float* (*allocate)(std::size_t bytes);  ///< null when there is none left
    void (*deallocate)(float* data, std::size_t bytes);
    std::size_t pooled_from;  ///< bytes below which nothing is kept
    std::size_t idle_limit;   ///< bytes that may wait
  };
  static const Source heap;
  static std::shared_ptr<BufferPool> create(const Source& source = heap) {
    return std::shared_ptr<BufferPool>(new BufferPool(source));
  }
  ~BufferPool();
  Tensor empty(Shape shape);
  /// So many bytes, or null where the source has no more, even when it gets back all that waits.
  std::shared_ptr<float> take(std::size_t bytes);
  /// Bytes waiting to be used again.
  std::size_t idle_bytes() const;

 private:
  explicit BufferPool(const Source& source);
  void release(float* data, std::size_t bytes);
  void drop_idle();
  struct State;
  const Source source_;
  std::unique_ptr<State> state_;
};

}  // namespace headscope
