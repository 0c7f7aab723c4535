#include "core/model/kv_cache.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <iterator>

#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/trace/layer_kinds.h"

namespace headscope {

namespace {
template <class Taken, class Visit>
void each_of(Taken& taken, Visit visit) {
  for (auto* const kept : {&taken.read, &taken.x, &taken.delta, &taken.b, &taken.beta, &taken.c}) visit(*kept);
}
}  // namespace

CachedNumbers kept_numbers(const ModelDims& d) {
  const int value = d.value_width();
  CachedNumbers out;
  if (d.state_space()) {
    const std::int64_t b = std::int64_t{d.state_groups} * d.d_state;
    const bool convolves = d.state_kind == StateKind::convolution;
    const int rates = d.state_kind == StateKind::delta ? 2 : convolves ? 0 : 1;  // Δ, and β
    out.numbers = static_cast<std::uint64_t>(d.convolved) +
                  static_cast<std::uint64_t>(d.d_inner + std::int64_t{rates} * d.lanes + b);
    if (convolves) {
      out.words = said("B x, x and B of every channel, to go back to any token");
      out.sum = fmt::format("3 · {}", d.d_inner);
      return out;
    }
    out.words = rates == 2 ? said("convolved + d_inner + 2 · lanes + groups · d_state, to go back to any token")
                           : said("convolved + d_inner + lanes + groups · d_state, to go back to any token");
    out.sum = fmt::format("{} + {} + {}{} + {} · {}", d.convolved, d.d_inner, rates == 2 ? "2 · " : "", d.lanes,
                          d.state_groups, d.d_state);
    return out;
  }
  out.numbers = static_cast<std::uint64_t>(d.kv_heads) * static_cast<std::uint64_t>(d.d_head + value);
  if (value == d.d_head) {
    out.words = said("2 · key heads · d_head");
    out.sum = fmt::format("2 · {} · {}", d.kv_heads, d.d_head);
  } else {
    out.words = said("key heads · (d_head + d_value)");
    out.sum = fmt::format("{} · ({} + {})", d.kv_heads, d.d_head, value);
  }
  return out;
}

CachedNumbers needed_numbers(const ModelConfig& c) {
  if (!c.dims.any_attends()) return {0, said("a state, as large for a text of any length"), "0"};
  if (!c.latent()) return kept_numbers(c.dims);
  return {static_cast<std::uint64_t>(c.cached_numbers()), said("latent + dimensions of the key that turn"),
          fmt::format("{} + {}", c.dims.kv_latent, c.rotary.width)};
}

std::uint64_t kept_in_all(const ModelDims& dims) {
  std::uint64_t all = 0;
  for (const LayerKind& kind : layer_kinds(dims))
    if (kind.mixer == Mixer::attention)
      all += static_cast<std::uint64_t>(kind.layers) * kept_numbers(kind.dims).numbers;
  return all;
}

std::uint64_t needed_in_all(const ModelConfig& c) {
  std::uint64_t all = 0;
  for (int layer = 0; layer < c.dims.layers; ++layer)
    if (c.dims.attends(layer) && c.own_keys(layer))
      all += c.latent() ? needed_numbers(c).numbers : kept_numbers(c.dims.of_layer(layer)).numbers;
  return all;
}

std::string kept_in_all_sum(const ModelDims& dims) {
  std::vector<std::string> terms;
  for (const LayerKind& kind : layer_kinds(dims))
    if (kind.mixer == Mixer::attention)
      terms.push_back(fmt::format("{} · ({})", kind.layers, kept_numbers(kind.dims).sum));
  return fmt::format("{}", fmt::join(terms, " + "));
}

CachedNumbers state_numbers(const ModelConfig& c) {
  if (!c.state_space) return {};
  const ModelDims& d = c.dims;
  const auto u = [](int n) { return static_cast<std::uint64_t>(n); };
  if (d.state_kind == StateKind::convolution)
    return {u(d.convolved) * u(c.state_space->convolution - 1), said("channels · (convolution − 1)"),
            fmt::format("{} · {}", d.convolved, c.state_space->convolution - 1)};
  return {u(d.d_inner) * u(d.d_state) + u(d.convolved) * u(c.state_space->convolution - 1),
          said("d_inner · d_state + convolved · (convolution − 1)"),
          fmt::format("{} · {} + {} · {}", d.d_inner, d.d_state, d.convolved, c.state_space->convolution - 1)};
}

KvCache::KvCache(const ModelDims& dims, int capacity, bool queries)
    : panels_(static_cast<std::size_t>(dims.layers)),
      source_panels_(static_cast<std::size_t>(dims.layers)),
      source_(static_cast<std::size_t>(dims.layers)),
      capacity_(capacity) {
  held_.resize(static_cast<std::size_t>(dims.layers));
  k_.resize(held_.size()), v_.resize(held_.size());
  if (queries) q_.resize(held_.size());
  for (int layer = 0; layer < dims.layers; ++layer) {
    const ModelDims own = dims.of_layer(layer);
    if (!dims.attends(layer)) {
      nth(held_, layer).taken = {
          Tensor::uninitialized({capacity, dims.convolved}),
          Tensor::uninitialized({capacity, dims.lanes, dims.d_inner / dims.lanes}),
          dims.state_kind == StateKind::convolution ? Tensor() : Tensor::uninitialized({capacity, dims.lanes}),
          Tensor::uninitialized({capacity, dims.state_groups, dims.d_state}),
          dims.state_kind == StateKind::delta ? Tensor::uninitialized({capacity, dims.lanes}) : Tensor(),
          queries ? Tensor::uninitialized({capacity, dims.state_groups, dims.d_state}) : Tensor()};
      continue;
    }
    nth(k_, layer) = GrowingRows(Tensor::uninitialized({capacity, own.kv_heads, own.d_head}));
    nth(v_, layer) = GrowingRows(Tensor::uninitialized({capacity, own.kv_heads, own.value_width()}));
    if (queries) nth(q_, layer) = GrowingRows(Tensor::uninitialized({capacity, dims.heads, own.d_head}));
  }
}

std::size_t KvCache::bytes() const {
  std::size_t total = 0;
  for (const std::vector<GrowingRows>* const rows : {&k_, &v_, &q_})
    for (const GrowingRows& each : *rows) total += each.bytes();
  for (const std::vector<GrowingPanels>* const panels : {&panels_, &source_panels_})
    for (const GrowingPanels& each : *panels) total += each.bytes();
  for (const Both& each : source_)
    if (each.k.defined()) total += each.k.bytes() + each.v.bytes();
  for (const Held& each : held_) {
    each_of(each.taken, [&](const Tensor& kept) { total += kept.defined() ? kept.bytes() : 0; });
    for (const State& state : each.states) total += state.value.bytes();
  }
  return total;
}

std::size_t KvCache::panel_bytes() const {
  std::size_t total = 0;
  for (const GrowingPanels& each : panels_) total += each.bytes_in_use();
  return total;
}

std::size_t KvCache::source_bytes() const {
  std::size_t total = 0;
  for (const GrowingPanels& each : source_panels_) total += each.bytes_in_use();
  for (const Both& each : source_)
    if (each.k.defined()) total += each.k.bytes() + each.v.bytes();
  return total;
}

void KvCache::truncate(int length) {
  assert(length >= 0 && length <= length_);
  length_ = length;
}

void KvCache::reserve(int capacity) {
  capacity_ = std::max(capacity_, capacity);
}

Tensor KvCache::put_here(Tensor& all, const Tensor& fresh) const {
  assert(length_ + fresh.dim(0) <= capacity_);
  if (all.dim(0) < capacity_) {
    Shape shape = all.shape();
    shape[0] = capacity_;
    const Tensor had = std::exchange(all, Tensor::uninitialized(shape));
    std::memcpy(all.mutable_data(), had.data(), had.slice(0, 0, length_).bytes());
  }
  const Tensor rows = fresh.packed();
  std::memcpy(all.slice(0, length_, length_ + fresh.dim(0)).mutable_data(), rows.data(), rows.bytes());
  return all.slice(0, 0, length_ + fresh.dim(0));
}

KvCache KvCache::copy() const {
  KvCache other = *this;
  const auto own = [this](Tensor& all) {  // what is read so far in other storage; what is not written to is shared
    if (!all.defined()) return;
    const Tensor read = all.slice(0, 0, length_);
    all = Tensor::uninitialized(all.shape());
    std::memcpy(all.mutable_data(), read.data(), read.bytes());
  };
  for (std::vector<GrowingRows>* const rows : {&other.k_, &other.v_, &other.q_})
    for (GrowingRows& each : *rows) each = each.copy(length_);
  for (Held& each : other.held_) each_of(each.taken, own);
  return other;
}

KvCache::Both KvCache::append(int layer, const Tensor& k, const Tensor& v, Backend& backend) {
  assert(length_ + k.dim(0) <= capacity_);
  nth(panels_, layer).forget(length_);
  return {nth(k_, layer).put(length_, k, capacity_, backend), nth(v_, layer).put(length_, v, capacity_, backend)};
}

Tensor KvCache::append_queries(int layer, const Tensor& q, Backend& backend) {
  return nth(q_, layer).put(length_, q, capacity_, backend);
}

KvCache::Taken KvCache::append(int layer, const Taken& fresh) {
  Taken& all = nth(held_, layer).taken;
  // Those of what was taken back, or of a pass that was stopped, are of other tokens.
  std::erase_if(nth(held_, layer).states, [this](const State& each) { return each.tokens > length_; });
  const auto put = [this](Tensor& kept, const Tensor& own) { return kept.defined() ? put_here(kept, own) : Tensor(); };
  return {put(all.read, fresh.read), put(all.x, fresh.x),       put(all.delta, fresh.delta),
          put(all.b, fresh.b),       put(all.beta, fresh.beta), put(all.c, fresh.c)};
}

Tensor KvCache::read_before(int layer, Index rows) const {
  if (length_ == 0 || rows == 0) return {};
  const Tensor& read = nth(held_, layer).taken.read;
  Tensor out = Tensor::zeros({rows, read.dim(1)});
  const Index there = std::min<Index>(rows, length_);
  std::memcpy(&out.ref(rows - there, 0), read.slice(0, length_ - there, length_).data(),
              static_cast<std::size_t>(there * read.dim(1)) * sizeof(float));
  return out;
}

KvCache::State KvCache::state(int layer) const {
  const std::vector<State>& states = nth(held_, layer).states;
  const auto beyond = std::ranges::upper_bound(states, length_, {}, &State::tokens);
  return beyond == states.begin() ? State() : *std::prev(beyond);
}

void KvCache::keep_state(int layer, Tensor state, int tokens) {
  std::vector<State>& states = nth(held_, layer).states;
  std::erase_if(states, [&](const State& each) { return each.tokens > further_back(tokens); });
  if (states.size() > 1) states.erase(states.begin(), states.end() - 1);
  states.push_back({tokens, std::move(state)});
}

void KvCache::advance(int tokens) {
  length_ += tokens;
  text_ = length_;
  assert(length_ <= capacity_);
}

}  // namespace headscope
