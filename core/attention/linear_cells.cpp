#include "core/attention/linear_cells.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <cstdint>
#include <utility>

namespace headscope {

namespace {

constexpr Index band_rows = 64;

/// What a thread computed of late: a number that no other cells ever had, since an address may come again.
struct Band {
  std::uint64_t of = 0;
  KeyRange rows;
  Tensor values;  ///< (rows.size(), rows.end)
};

class LinearCells final : public ComputedCells {
 public:
  LinearCells(std::shared_ptr<const LinearMixing> mixing, Index heads, Index head)
      : mixing_(std::move(mixing)), heads_(heads), head_(head) {}

  Index rows() const override { return mixing_->x.dim(0); }
  Index columns() const override { return rows(); }

  void write(KeyRange asked, KeyRange columns, float* out, Index stride) const override {
    assert(asked.begin >= 0 && asked.end <= rows() && columns.begin >= 0 && columns.end <= this->rows());
    for (KeyRange part{asked.begin, asked.begin}; part.begin < asked.end; part.begin = part.end) {
      const Index first = part.begin / band_rows * band_rows;
      const KeyRange band{first, std::min(first + band_rows, rows())};
      // Many rows at once are computed as they are asked for: what they have in common is made once.
      const bool many = asked.end - part.begin >= 2 * band_rows;
      part.end = many ? asked.end : std::min(asked.end, band.end);
      const Band fresh = many ? Band{0, part, mean_pattern(*mixing_, heads_, head_, part)} : Band{};
      const Band& from = many ? fresh : remembered(band);
      for (Index row = part.begin; row < part.end; ++row) {
        float* const to = out + (row - asked.begin) * stride;
        const Index end = std::clamp(from.rows.end, columns.begin, columns.end), width = end - columns.begin;
        if (width > 0)
          std::copy_n(&from.values.data()[(row - from.rows.begin) * from.rows.end + columns.begin], width, to);
        std::fill(to + width, to + columns.size(), 0.0f);
      }
    }
  }

 private:
  const Band& remembered(KeyRange rows) const {
    thread_local std::array<Band, 4> bands;  // several maps may be read side by side
    thread_local std::size_t oldest = 0;
    for (const Band& band : bands)
      if (band.of == number_ && band.rows.begin == rows.begin) return band;
    Band& band = bands[std::exchange(oldest, (oldest + 1) % bands.size())];
    band = {};
    return band = {number_, rows, mean_pattern(*mixing_, heads_, head_, rows)};
  }

  static std::uint64_t next_number() {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
  }

  std::shared_ptr<const LinearMixing> mixing_;
  Index heads_, head_;
  std::uint64_t number_ = next_number();
};

}  // namespace

std::vector<std::shared_ptr<const ComputedCells>> cells_of(LinearMixing in, Index heads) {
  const auto shared = std::make_shared<const LinearMixing>(std::move(in));
  std::vector<std::shared_ptr<const ComputedCells>> out;
  for (Index head = 0; head < heads; ++head) out.push_back(std::make_shared<LinearCells>(shared, heads, head));
  return out;
}

}  // namespace headscope
