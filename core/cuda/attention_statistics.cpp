#include "core/cuda/attention_statistics.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/nth.h"

namespace headscope::cuda {
namespace {

constexpr Index line = 32;                       // numbers
constexpr Index block_numbers = Index{1} << 15;  // 128 KiB: a few layers of one token

Index pooled(Index n, Index bin) {
  return (n + bin - 1) / bin;
}

double mass(unsigned long long units) {
  return static_cast<double>(units) * mass_unit;
}
/// A weight in whole units: a number of float64 that much larger has no others behind it.
double in_units(float weight) {
  constexpr double larger = mass_unit * (1ull << 52);
  return (static_cast<double>(weight) + larger) - larger;
}

void fill(const AttentionStatistics::Of& s, Index head) {
  HeadStats& to = *nth(s.to, head);
  const float* const here = s.numbers.data();
  const float* const over_there = CardTensors::place(s.numbers);
  const auto home = [&]<class T>(const T* place) {
    return reinterpret_cast<const T*>(here + (reinterpret_cast<const float*>(place) - over_there));
  };
  const auto take = [&](auto& into, const auto* from, Index count) {
    const auto* const first = home(from) + head * count;
    into.assign(first, first + count);
  };
  take(to.log_sum_exp, s.room.log_sum_exp, s.n_query);
  take(to.entropy, s.room.entropy, s.n_query);
  take(to.entropy_without_first, s.room.entropy_without_first, s.n_query);
  take(to.max_weight, s.room.max_weight, s.n_query);
  take(to.max_key, s.room.max_key, s.n_query);
  take(to.first, s.room.first, s.n_query);
  if (s.links) {
    take(to.duplicate, s.room.duplicate, s.n_query);
    take(to.induction, s.room.induction, s.n_query);
  }
  to.column_mass.resize(static_cast<std::size_t>(s.n_key));
  to.distance_mass.resize(static_cast<std::size_t>(s.n_query + s.n_key - 1));
  const Index rows = pooled(s.n_query, s.bin), columns = pooled(s.n_key, s.bin);
  if (s.bin > 1) to.overview.values = Tensor::zeros({rows, columns});
  if (s.weights.defined()) {
    const float* const weights = s.weights.data() + head * s.n_key;
    for (Index key = 0; key < s.n_key; ++key)
      to.column_mass[static_cast<std::size_t>(key)] = to.distance_mass[static_cast<std::size_t>(s.n_key - 1 - key)] =
          in_units(weights[key]);
    if (s.bin > 1)
      for (Index column = 0; column < columns; ++column)
        to.overview.values.ref(0, column) =
            *std::max_element(weights + column * s.bin, weights + std::min((column + 1) * s.bin, s.n_key));
    return;
  }
  std::ranges::transform(std::span(home(s.room.column) + head * s.n_key, to.column_mass.size()), to.column_mass.begin(),
                         mass);
  std::ranges::transform(std::span(home(s.room.distance) + head * (s.n_query + s.n_key - 1), to.distance_mass.size()),
                         to.distance_mass.begin(), mass);
  if (s.bin > 1)
    std::memcpy(to.overview.values.mutable_data(), home(s.room.overview) + head * rows * columns,
                to.overview.values.bytes());
}

}  // namespace

Tensor AttentionStatistics::take(Index numbers) {
  numbers = (numbers + line - 1) / line * line;
  if (!block_.defined() || used_ + numbers > block_.size()) {
    send();
    block_ = card_.room({std::max(numbers, block_numbers)});
    used_ = 0;
    check(cudaMemsetAsync(CardTensors::place(block_), 0, block_.bytes(), card_.stream()), "clearing statistics");
  }
  used_ += numbers;
  return block_.slice(0, used_ - numbers, used_);
}

AttentionStatistics::Of& AttentionStatistics::add(Index heads, Index n_query, Index n_key, bool links) {
  auto of = std::make_unique<Of>();
  of->heads = heads;
  of->n_query = n_query;
  of->n_key = n_key;
  of->links = links;
  const Index bin = of->bin = (std::max(n_query, n_key) + stored_overview_cells - 1) / stored_overview_cells;
  const bool single = n_query == 1;
  const Index rows = heads * n_query, keys = single ? 0 : heads * n_key,
              distances = single ? 0 : heads * (n_query + n_key - 1),
              cells = !single && bin > 1 ? heads * pooled(n_query, bin) * pooled(n_key, bin) : 0,
              weights = single ? heads * n_key : 0;
  of->numbers = take(2 * (rows + keys + distances) + 7 * rows + cells + weights);
  float* const first = CardTensors::place(of->numbers);
  StatsRoom& s = of->room;
  s.log_sum_exp = reinterpret_cast<double*>(first);
  auto* const masses = reinterpret_cast<unsigned long long*>(s.log_sum_exp + rows);
  if (!single) {
    s.column = masses;
    s.distance = masses + keys;
  }
  s.entropy = reinterpret_cast<float*>(masses + keys + distances);
  s.entropy_without_first = s.entropy + rows;
  s.max_weight = s.entropy_without_first + rows;
  s.first = s.max_weight + rows;
  s.max_key = reinterpret_cast<int*>(s.first + rows);
  float* const linked = reinterpret_cast<float*>(s.max_key + rows);
  if (links) {
    s.duplicate = linked;
    s.induction = linked + rows;
  }
  float* const last = linked + 2 * rows;
  s.bin = static_cast<int>(bin);
  if (cells > 0) {
    s.overview = last;
    s.overview_rows = static_cast<int>(pooled(n_query, bin));
    s.overview_columns = static_cast<int>(pooled(n_key, bin));
  }
  if (single) of->weights = of->numbers.slice(0, last - first, last - first + weights).reshape({heads, 1, n_key});
  pending_.push_back(std::move(of));
  return *pending_.back();
}

void AttentionStatistics::queued() {
  if (used_ + pending_.back()->numbers.size() > block_.size())
    send();  // no room for another: while the next layer runs
}

void AttentionStatistics::send() {
  if (!block_.defined()) return;
  CardTensors::storage(block_)->cut_to(used_);
  block_.remote()->send();
  block_ = {};
}

void AttentionStatistics::finish(ThreadPool& pool) {
  send();
  const std::vector<std::unique_ptr<Of>> pending = std::exchange(pending_, {});
  for (std::size_t begin = 0; begin < pending.size();) {  // those of one block come together
    std::size_t end = begin;
    std::vector<std::pair<const Of*, Index>> heads;
    for (; end < pending.size() && pending[end]->numbers.remote() == pending[begin]->numbers.remote(); ++end)
      for (Index head = 0; head < pending[end]->heads; ++head) heads.emplace_back(pending[end].get(), head);
    pending[begin]->numbers.remote()->arrive();
    pool.parallel(static_cast<int>(heads.size()),
                  [&](int i, int) { fill(*nth(heads, i).first, nth(heads, i).second); });
    begin = end;
  }
}

void AttentionStatistics::forget() {
  pending_.clear();
  block_ = {};
}

}  // namespace headscope::cuda
