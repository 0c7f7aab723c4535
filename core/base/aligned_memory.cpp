#include "core/base/aligned_memory.h"

#include <new>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace headscope {
namespace {

constexpr std::size_t cache_line = 64, huge_page = std::size_t{2} << 20;

std::align_val_t alignment_of(std::size_t bytes) {
  return std::align_val_t{bytes >= huge_page ? huge_page : cache_line};
}

}  // namespace

void* allocate_aligned(std::size_t bytes) {
  void* const data = ::operator new(bytes, alignment_of(bytes));
#ifdef __linux__
  if (bytes >= huge_page) madvise(data, bytes / huge_page * huge_page, MADV_HUGEPAGE);  // a hint
#endif
  return data;
}

void deallocate_aligned(void* data, std::size_t bytes) {
  ::operator delete(data, alignment_of(bytes));
}

}  // namespace headscope
