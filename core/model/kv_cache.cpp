#include "core/model/kv_cache.h"

#include <cassert>
#include <cstring>

namespace headscope {

KvCache::KvCache(const ModelDims& dims, int capacity) : capacity_(capacity) {
  for (int layer = 0; layer < dims.layers; ++layer)
    for (auto* side : {&k_, &v_}) side->push_back(Tensor::uninitialized({capacity, dims.kv_heads, dims.d_head}));
}

std::size_t KvCache::bytes() const {
  std::size_t total = 0;
  for (std::size_t layer = 0; layer < k_.size(); ++layer) total += k_[layer].bytes() + v_[layer].bytes();
  return total;
}

void KvCache::truncate(int length) {
  assert(length >= 0 && length <= length_);
  length_ = length;
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
  assert(length_ <= capacity_);
}

}  // namespace headscope
