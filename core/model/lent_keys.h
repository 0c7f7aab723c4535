#pragma once
// Keys and values that one layer makes and others read (ModelConfig::kv_layers). Private to core/model.

#include <functional>
#include <utility>

#include "core/tensor/tensor.h"
#include "core/trace/site.h"

namespace headscope {

/// Of one layer, (position, kv_head, width) at their sites, behind its edits.
struct LentKeys {
  Tensor k, k_normed, rot_k, v_unnormed, v;
};

/// Keys or values of a layer on their way from site to site. Those of a layer that reads another's are that one's, up
/// to where an edit of its own changes them; from there on they are made of what it left.
class KeyWay {
 public:
  /// `tap(site, value)` gives what is to be seen there. `from`: null where the layer makes its own. `to`: null where
  /// nobody else reads them.
  KeyWay(std::function<Tensor(Site, Tensor)> tap, int layer, const LentKeys* from, LentKeys* to)
      : tap_(std::move(tap)), layer_(layer), from_(from), to_(to) {}
  template <class Make>
  Tensor at(SiteKind kind, Tensor LentKeys::*part, Make make) {
    const Tensor value = from_ ? from_->*part : make();
    Tensor seen = tap_({kind, layer_}, value);
    if (from_ && seen.storage() != value.storage()) from_ = nullptr;
    if (to_) to_->*part = seen;
    return seen;
  }

 private:
  std::function<Tensor(Site, Tensor)> tap_;
  int layer_;
  const LentKeys* from_;
  LentKeys* to_;
};

}  // namespace headscope
