#include "core/train/recurrent_layers.h"

#include <cmath>
#include <utility>
#include <vector>

#include "core/attention/state_mixing.h"
#include "core/model/weights.h"

namespace headscope {

double retention_decay(int head) {
  return 1 - std::pow(2.0, -1 - 4 * head);
}

namespace {
class RecurrentLayers final : public Tap {
 public:
  RecurrentLayers(const ModelConfig& config, std::set<int> layers, int length, Backend& backend)
      : config_(config), layers_(std::move(layers)), length_(length), backend_(backend) {
    scale_ = static_cast<float>(1 / std::sqrt(static_cast<double>(config.dims.d_head)));
    decay_ = Tensor::zeros({config.dims.heads, 1});
    for (int head = 0; head < config.dims.heads; ++head)
      decay_.ref(head, 0) = static_cast<float>(std::log(retention_decay(head)) / scale_);  // per unit of step
  }

  bool wants(Site site) const override {
    if (!layers_.contains(site.layer)) return false;
    const bool turned = config_.turns(site.layer);
    return site.kind == (turned ? SiteKind::rot_q : SiteKind::q) ||
           site.kind == (turned ? SiteKind::rot_k : SiteKind::k) || site.kind == SiteKind::v ||
           site.kind == SiteKind::z;
  }
  Tensor at(Site site, const Tensor& value) override {
    if (site.kind == SiteKind::q || site.kind == SiteKind::rot_q) q_ = value;
    if (site.kind == SiteKind::k || site.kind == SiteKind::rot_k) k_ = value;
    if (site.kind == SiteKind::v) v_ = value;
    if (site.kind != SiteKind::z) return value;
    const Index n = value.dim(0);
    const std::vector<Index> lengths(static_cast<std::size_t>(n / length_), length_);
    StateMixing mix;
    mix.x = v_, mix.b = k_, mix.c = q_, mix.a = decay_;
    mix.delta = Tensor::full({n, config_.dims.heads}, scale_);
    if (n > length_) mix.lengths = lengths;
    Tensor z = mix_states(backend_, mix);
    q_ = k_ = v_ = {};
    return z;
  }

 private:
  const ModelConfig config_;
  const std::set<int> layers_;
  const Index length_;
  Backend& backend_;
  float scale_ = 1;
  Tensor decay_;      // (head, 1)
  Tensor q_, k_, v_;  // (position, head, d_head) of the layer that runs
};
}  // namespace

std::shared_ptr<Tap> recurrent_layers(const ModelConfig& config, std::set<int> layers, int length, Backend& backend) {
  return std::make_shared<RecurrentLayers>(config, std::move(layers), length, backend);
}

}  // namespace headscope
