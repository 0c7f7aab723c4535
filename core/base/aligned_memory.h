#pragma once
// Memory for many numbers: on cache lines, and from two megabytes on on huge pages, where the system has them: fewer
// faults when it is first written, fewer misses of the address cache when a product streams through it.

#include <cstddef>

namespace headscope {

/// Throws std::bad_alloc.
void* allocate_aligned(std::size_t bytes);
/// REQUIRES the same number of bytes.
void deallocate_aligned(void* data, std::size_t bytes);

}  // namespace headscope
