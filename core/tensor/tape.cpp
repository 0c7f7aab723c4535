#include "core/tensor/tape.h"

#include <algorithm>
#include <cassert>

#include "core/tensor/backend.h"

namespace headscope {

Tape::Tape(Backend& backend) : backend_(backend) {}
Tape::~Tape() = default;

void Tape::watch(const Tensor& x) {
  watched_.emplace(x.storage().first, x);
  active_.insert(x.storage().first);
}

bool Tape::watched(const Tensor& x) const {
  return x.defined() && watched_.contains(x.storage().first);
}

void Tape::record(const Tensor& output, Backward backward) {
  assert(output.contiguous() && output.size() == output.storage().size);
  active_.insert(output.storage().first);
  records_.push_back({output, std::move(backward)});
}

void Tape::backward(const Tensor& output, const Tensor& weight) {
  assert(output.shape() == weight.shape());
  backend_.accumulate(weight, into(output));
  while (!records_.empty()) {
    // Taken off before it runs: what an op kept, and its output's gradient, go back to the pool for those below.
    Record record = std::move(records_.back());
    records_.pop_back();
    const auto found = gradients_.find(record.output.storage().first);
    if (found == gradients_.end()) continue;  // nothing that counts depends on this op
    running_ = found->second;
    if (!watched(record.output)) gradients_.erase(found);
    record.backward(view(record.output, running_));
    running_ = {};
  }
}

Tensor Tape::gradient(const Tensor& x) {
  assert(watched(x));
  const Slot slot = into(x);
  if (!slot.add) backend_.clear(slot.values);
  return slot.values;
}

Tape::Slot Tape::into(const Tensor& x) {
  const Tensor::Storage storage = x.storage();
  Gradient& gradient = gradients_[storage.first];
  if (!gradient.buffer) {
    gradient = {x, std::make_shared<Tensor>(backend_.room({storage.size}))};
    // Whoever writes all of the storage, in whatever order, need not find zeros there.
    if (x.size() == storage.size) return {view(x, gradient), false};
    backend_.clear(*gradient.buffer);
  } else if (gradient.buffer.use_count() > 1) {
    auto own = std::make_shared<Tensor>(backend_.room({storage.size}));
    backend_.accumulate(*gradient.buffer, {*own, false});
    gradient.buffer = std::move(own);
  }
  return {view(x, gradient), true};
}

bool Tape::give(const Tensor& x, std::shared_ptr<Tensor> buffer) {
  const Tensor::Storage storage = x.storage();
  if (x.size() != storage.size || !x.contiguous()) return false;
  Gradient& gradient = gradients_[storage.first];
  if (gradient.buffer) return false;
  assert(buffer && buffer->size() == storage.size);
  gradient = {x, std::move(buffer)};
  return true;
}

bool Tape::pass_on(const Tensor& x) {
  return give(x, running_.buffer);
}

bool Tape::adopt(const Tensor& x, const Tensor& values) {
  return give(x, std::make_shared<Tensor>(values.reshape({values.size()})));
}

}  // namespace headscope
