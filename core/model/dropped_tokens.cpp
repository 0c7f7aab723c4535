#include "core/model/dropped_tokens.h"

#include <algorithm>

#include "core/base/nth.h"

namespace headscope {

Tensor without_dropped(Backend& backend, const Tensor& rows, std::span<const std::int32_t> tokens,
                       std::span<const Index> lengths, std::int32_t dropped, RowQueue* later) {
  if (std::ranges::count(tokens, dropped) == 0) return rows;
  const Index n = rows.dim(0), width = rows.dim(1);
  Tensor by = Tensor::zeros({n, width});
  Index first = 0;
  for (const Index length : lengths.empty() ? std::span(&n, 1) : lengths) {
    const auto text = tokens.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(length));
    const auto others = length - static_cast<Index>(std::ranges::count(text, dropped));
    for (Index i = 0; i < length; ++i)
      if (nth(text, i) != dropped)
        std::fill_n(&by.ref(first + i, 0), width, static_cast<float>(length) / static_cast<float>(others));
    first += length;
  }
  return backend.multiply(rows, by, later);
}

}  // namespace headscope
