#include "core/trace/tap.h"

#include <algorithm>

#include "core/base/error.h"

namespace headscope {

HeadRule TapChain::head_rule(HeadId head, HeadRule usual) const {
  for (const Tap* tap : taps_) usual = tap->head_rule(head, std::move(usual));
  return usual;
}

bool TapChain::wants(Site site) const {
  return std::any_of(taps_.begin(), taps_.end(), [&](const Tap* tap) { return tap->wants(site); });
}

Tensor TapChain::at(Site site, const Tensor& value) {
  Tensor current = value;
  for (Tap* tap : taps_) {
    if (!tap->wants(site)) continue;
    Tensor next = tap->at(site, current);
    if (!next.defined() || next.shape() != current.shape())
      throw Error(name(site), "a tensor of shape " + current.shape().str() + " from every tap",
                  next.defined() ? next.shape().str() : "no tensor");
    current = std::move(next);
  }
  return current;
}

}  // namespace headscope
