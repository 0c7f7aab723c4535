#include "core/model/kv_cache.h"

#include <fmt/format.h>

#include <cassert>
#include <cstring>

namespace headscope {

CachedNumbers kept_numbers(const ModelDims& d) {
  const int value = d.value_width();
  CachedNumbers out;
  out.numbers = static_cast<std::uint64_t>(d.kv_heads) * static_cast<std::uint64_t>(d.d_head + value);
  if (value == d.d_head) {
    out.words = "2 · key heads · d_head";
    out.sum = fmt::format("2 · {} · {}", d.kv_heads, d.d_head);
  } else {
    out.words = "key heads · (d_head + d_value)";
    out.sum = fmt::format("{} · ({} + {})", d.kv_heads, d.d_head, value);
  }
  return out;
}

CachedNumbers needed_numbers(const ModelConfig& c) {
  if (!c.latent()) return kept_numbers(c.dims);
  return {static_cast<std::uint64_t>(c.cached_numbers()), "latent + dimensions of the key that turn",
          fmt::format("{} + {}", c.dims.kv_latent, c.rotary.width)};
}

KvCache::KvCache(const ModelDims& dims, int capacity)
    : source_(static_cast<std::size_t>(dims.layers)), capacity_(capacity) {
  for (int layer = 0; layer < dims.layers; ++layer) {
    k_.push_back(Tensor::uninitialized({capacity, dims.kv_heads, dims.d_head}));
    v_.push_back(Tensor::uninitialized({capacity, dims.kv_heads, dims.value_width()}));
  }
}

std::size_t KvCache::bytes() const {
  std::size_t total = 0;
  for (std::size_t layer = 0; layer < k_.size(); ++layer) total += k_[layer].bytes() + v_[layer].bytes();
  for (const Both& each : source_)
    if (each.k.defined()) total += each.k.bytes() + each.v.bytes();
  return total;
}

void KvCache::truncate(int length) {
  assert(length >= 0 && length <= length_);
  length_ = length;
}

KvCache KvCache::copy() const {
  KvCache other = *this;
  for (std::vector<Tensor>* all : {&other.k_, &other.v_})
    for (Tensor& each : *all) {
      const Tensor read = each.slice(0, 0, length_);
      each = Tensor::uninitialized(each.shape());
      std::memcpy(each.mutable_data(), read.data(), read.bytes());
    }
  return other;
}

KvCache::Both KvCache::append(int layer, const Tensor& k, const Tensor& v) {
  const auto put = [&](Tensor& all, const Tensor& fresh) {
    assert(length_ + fresh.dim(0) <= capacity_);
    const Tensor packed = fresh.packed();
    std::memcpy(&all.ref(length_, 0, 0), packed.data(), packed.bytes());
    return all.slice(0, 0, length_ + fresh.dim(0));
  };
  const auto l = static_cast<std::size_t>(layer);
  return {put(k_[l], k), put(v_[l], v)};
}

void KvCache::advance(int tokens) {
  length_ += tokens;
  text_ = length_;
  assert(length_ <= capacity_);
}

}  // namespace headscope
