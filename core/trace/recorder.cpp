#include "core/trace/recorder.h"

#include <utility>

namespace headscope {

Recorder::Recorder(CaptureSpec spec) : spec_(std::move(spec)) {
  const auto has = [&](SiteKind kind) { return spec_.sites.count(kind) > 0; };
  keep_views_ = has(SiteKind::q) && has(SiteKind::k) && has(SiteKind::v);
}

bool Recorder::wants(Site site) const {
  if (site.kind == SiteKind::pattern || spec_.sites.count(site.kind) == 0) return false;
  return site.layer < 0 || spec_.layers.empty() || spec_.layers.count(site.layer) > 0;
}

Tensor Recorder::at(Site site, const Tensor& value) {
  sites_[site] = keep_views_ ? value : value.packed();
  return value;
}

std::map<Site, Tensor> Recorder::take() {
  return std::exchange(sites_, {});
}

}  // namespace headscope
