#pragma once
// A Tap sees, and may replace, the tensor at a Site. Recording and intervening are the same mechanism.

#include <span>
#include <vector>

#include "core/tensor/tensor.h"
#include "core/trace/site.h"

namespace headscope {

class Tap {
 public:
  virtual ~Tap() = default;
  /// Asked before the tensor is computed. A site nobody wants may be fused away (scores, pattern, per-head results).
  virtual bool wants(Site site) const = 0;
  /// Called once per wanted site and pass, in forward order, on the thread that runs the pass. Returns the tensor to go on
  /// with: `value` itself to observe, or another of the same shape to intervene (a different shape is an Error).
  virtual Tensor at(Site site, const Tensor& value) = 0;
};

/// Several taps in order: each sees what the one before it returned. Put recorders last.
class TapChain final : public Tap {
 public:
  explicit TapChain(std::vector<Tap*> taps) : taps_(std::move(taps)) {}
  bool wants(Site site) const override;
  Tensor at(Site site, const Tensor& value) override;

 private:
  std::vector<Tap*> taps_;
};

}  // namespace headscope
