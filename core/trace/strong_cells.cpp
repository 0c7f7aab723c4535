#include "core/trace/strong_cells.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "core/base/nth.h"

namespace headscope {

namespace {

constexpr Index at_once = 16;  // cells of a row that are taken up together

// The pass sums its exponentials in another order than a row that is computed again: the last digits may differ.
float no_less_than(float largest) {
  return std::isnan(largest) ? std::numeric_limits<float>::infinity() : largest * 1.0001f;
}

}  // namespace

StrongCells::StrongCells(AttentionMap map, std::optional<Index> row) : map_(std::move(map)), row_(row) {}

bool StrongCells::Entry::operator<(const Entry& other) const {
  // What is left of a row comes before cells of the same weight, which it may hold earlier ones of.
  return std::tuple(-bound, key >= 0, query, key) > std::tuple(-other.bound, other.key >= 0, other.query, other.key);
}

void StrongCells::begin(const std::stop_token& stop) {
  begun_ = true;
  weights_.resize(static_cast<std::size_t>(map_.n_key()));
  order_.reserve(weights_.size());
  if (row_) {
    queue_.push({.bound = std::numeric_limits<float>::infinity(), .query = *row_});
    return;
  }
  const std::vector<float>& largest = map_.stats().max_weight;
  const bool known = map_.is_factored() && static_cast<Index>(largest.size()) == map_.n_query();
  for (Index query = 0; query < map_.n_query(); ++query) {
    float bound = known ? no_less_than(nth(largest, query)) : 0;
    if (!known) {
      if (stop.stop_requested()) {
        begun_ = false, queue_ = {};
        throw Cancelled();
      }
      map_.row(query, weights_);
      for (const float weight : weights_) bound = std::max(bound, std::abs(weight));  // a NaN is passed over
    }
    if (bound > 0) queue_.push({.bound = bound, .query = query});
  }
}

void StrongCells::expand(const Entry& rest) {
  map_.row(rest.query, weights_);
  order_.clear();
  for (Index key = 0; key < map_.n_key(); ++key)
    if (const float weight = nth(weights_, key); !std::isnan(weight) && weight != 0) order_.push_back(key);
  const auto stronger = [&](Index a, Index b) {
    const float x = std::abs(nth(weights_, a)), y = std::abs(nth(weights_, b));
    return x != y ? x > y : a < b;
  };
  const auto count = static_cast<Index>(order_.size());
  const Index end = std::min(rest.taken + at_once, count), sorted = std::min(end + 1, count);
  std::partial_sort(order_.begin(), order_.begin() + sorted, order_.end(), stronger);
  for (Index i = rest.taken; i < end; ++i) {
    const Index key = nth(order_, i);
    queue_.push({std::abs(nth(weights_, key)), nth(weights_, key), rest.query, key, 0});
  }
  if (end < count) queue_.push({std::abs(nth(weights_, nth(order_, end))), 0, rest.query, -1, end});
}

std::optional<AttentionMap::Cell> StrongCells::at(Index rank, const std::stop_token& stop) {
  if (!begun_) begin(stop);
  while (static_cast<Index>(found_.size()) <= rank && !queue_.empty()) {
    if (stop.stop_requested()) throw Cancelled();
    const Entry entry = queue_.top();
    queue_.pop();
    if (entry.key < 0)
      expand(entry);
    else
      found_.push_back({entry.query, entry.key, entry.weight});
  }
  if (static_cast<Index>(found_.size()) <= rank) return std::nullopt;
  return nth(found_, rank);
}

}  // namespace headscope
