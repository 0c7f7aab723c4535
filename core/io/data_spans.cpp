#include "core/io/data_spans.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "core/base/error.h"
#include "core/base/excerpt.h"

namespace headscope {

void sort_apart(std::span<DataSpan> spans, const std::string& where, const char* what) {
  std::ranges::sort(
      spans, [](const DataSpan& a, const DataSpan& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
  for (std::size_t i = 1; i < spans.size(); ++i) {
    const DataSpan &before = spans[i - 1], &s = spans[i];
    if (s.begin < before.end)
      throw Error(fmt::format("{}: {} {}", where, what, excerpt(*s.name)),
                  fmt::format("data that does not overlap {} {}", what, excerpt(*before.name)),
                  fmt::format("a begin at {}, before its end at {}", s.begin, before.end));
  }
}

}  // namespace headscope
