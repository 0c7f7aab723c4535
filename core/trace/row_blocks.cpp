#include "core/trace/row_blocks.h"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace headscope {

namespace {

// Fresh rows share a block with those before them from a multiple of this on: so much is copied for a row, at most, and
// a map has as many blocks as it has grown by this many rows.
constexpr Index block_rows = 16;

}  // namespace

std::size_t RowBlocks::bytes() const {
  std::size_t total = 0;
  for (const Block& block : blocks_) total += static_cast<std::size_t>(block.held) * sizeof(float);
  return total;
}

bool RowBlocks::holds(const Tensor& values) const {
  return std::ranges::any_of(blocks_, [&](const Block& block) { return block.rows.storage() == values.storage(); });
}

const RowBlocks::Block& RowBlocks::of(Index row) const {
  assert(row >= 0 && row < rows());
  return *std::prev(std::ranges::upper_bound(blocks_, row, {}, &Block::first));
}

void RowBlocks::push(Tensor rows, Index held) {
  assert(rows.rank() == 2 && rows.dim(1) <= columns_);
  blocks_.push_back({this->rows(), std::move(rows), held});
}

void RowBlocks::row(Index row, KeyRange columns, float* to) const {
  const Block& block = of(row);
  const Index width = std::clamp<Index>(block.rows.dim(1) - columns.begin, 0, columns.size());
  if (width > 0 && block.rows.stride(1) == 1)
    std::copy_n(block.rows.data() + (row - block.first) * block.rows.stride(0) + columns.begin, width, to);
  else
    for (Index i = 0; i < width; ++i) to[i] = block.rows.at(row - block.first, columns.begin + i);
  std::fill(to + width, to + columns.size(), 0.0f);
}

Tensor RowBlocks::tile(KeyRange rows, KeyRange columns) const {
  Tensor out = Tensor::uninitialized({rows.size(), columns.size()});
  for (Index i = 0; i < rows.size() && columns.size() > 0; ++i) row(rows.begin + i, columns, &out.ref(i, 0));
  return out;
}

Tensor RowBlocks::view(KeyRange rows) const {
  if (!defined() || rows.size() == 0) return {};
  const Block& block = of(rows.begin);
  if (block.rows.dim(1) < columns_ || rows.end > block.first + block.rows.dim(0)) return {};
  return block.rows.slice(0, rows.begin - block.first, rows.end - block.first);
}

RowBlocks RowBlocks::with(Index known, const Tensor& fresh) const {
  assert(known <= rows() && fresh.rank() == 2);
  RowBlocks out;
  out.columns_ = fresh.dim(1);
  const Index width = std::min(columns_, out.columns_);
  Index copied = known / block_rows * block_rows;  // rows from here on get a block with the fresh ones
  for (const Block& block : blocks_) {
    const Index rows = std::min(copied, block.first + block.rows.dim(0)) - block.first;
    if (rows <= 0) break;
    const Index own = std::min(block.rows.dim(1), width);
    if (2 * rows * own < block.held) {
      copied = block.first;
      break;
    }
    out.push(block.rows.slice(0, 0, rows).slice(1, 0, own), block.held);
  }
  Tensor last = fresh;
  if (copied < known) {
    last = Tensor::zeros({known - copied + fresh.dim(0), out.columns_});
    for (Index i = copied; i < known; ++i) row(i, {0, width}, &last.ref(i - copied, 0));
    const RowBlocks behind(fresh);
    for (Index i = 0; i < fresh.dim(0); ++i) behind.row(i, {0, out.columns_}, &last.ref(known - copied + i, 0));
  }
  out.push(last, last.size());
  return out;
}

}  // namespace headscope
