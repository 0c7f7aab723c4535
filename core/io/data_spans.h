#pragma once
// Which bytes of a file belong to which of its parts: no two parts may share any.

#include <cstdint>
#include <span>
#include <string>

namespace headscope {

struct DataSpan {
  std::uint64_t begin = 0, end = 0;
  const std::string* name = nullptr;
};

/// Sorts by place. Throws Error naming both of two parts ("tensor a", "tensor b") that overlap.
void sort_apart(std::span<DataSpan> spans, const std::string& where, const char* what = "tensor");

}  // namespace headscope
