#include "core/cuda/looks.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace headscope::cuda {

namespace {
constexpr Index large = Index{1} << 18;  // numbers that are not kept for it
}

void Looks::add(const Tensor& x) {
  if (columns_.size() == most) {
    send();
    card_.device()->synchronize();
    read();
  }
  waiting_.push_back(card_.on_card(x));
  columns_.push_back(x.dim(1));
  if (x.size() > large || waiting_.size() == most_looked) look();
}

void Looks::look() {
  if (waiting_.empty()) return;
  constexpr std::size_t bytes = most * sizeof(unsigned long long);
  if (!found_) {
    found_ = card_.device()->take(bytes);
    here_ = card_.device()->pinned(bytes);
  }
  const std::size_t before = columns_.size() - waiting_.size();
  if (before == 0) check(cudaMemsetAsync(found_.get(), 0xff, bytes, card_.stream()), "clearing findings");
  Looked looked{};
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    looked.x[i] = waiting_[i].data;
    looked.n[i] = std::min(waiting_[i].keeps.size(), (Index{1} << 32) - 1);
  }
  first_not_finite(looked, static_cast<int>(waiting_.size()),
                   reinterpret_cast<unsigned long long*>(found_.get()) + before, card_.stream());
  waiting_.clear();
}

void Looks::send() {
  look();
  if (!columns_.empty())
    check(cudaMemcpyAsync(here_.get(), found_.get(), columns_.size() * sizeof(unsigned long long),
                          cudaMemcpyDeviceToHost, card_.stream()),
          "copying findings from the card");
}

void Looks::read() {
  const auto* const found = reinterpret_cast<const unsigned long long*>(here_.get());
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    Backend::NotFinite& each = findings_.emplace_back();
    if (found[i] == ~0ull) continue;
    const auto place = static_cast<Index>(found[i] >> 32);
    each = {place / columns_[i], place % columns_[i], std::bit_cast<float>(static_cast<std::uint32_t>(found[i]))};
  }
  columns_.clear();
}

std::vector<Backend::NotFinite> Looks::take() {
  return std::exchange(findings_, {});
}

void Looks::forget() {
  waiting_.clear();
  columns_.clear();
  findings_.clear();
}

}  // namespace headscope::cuda
