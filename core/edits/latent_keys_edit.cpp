#include "core/edits/latent_keys_edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/edits/all.h"
#include "core/edits/edit_pass.h"
#include "core/edits/edit_step.h"
#include "core/model/weights.h"

namespace headscope {

LatentProjector latent_projector(const Model& model, int layer, int rank, const std::string& where) {
  const ModelDims dims = model.config().dims.of_layer(layer);
  if (!model.config().own_keys(layer))
    throw Error(where, "a layer that makes keys and values",
                fmt::format("layer {}, which reads those of layer {}", layer, model.config().kv_layer(layer)),
                "an edit of that layer reaches this one");
  if (model.config().latent())
    throw Error(
        where, "keys and values that are products of the stream",
        fmt::format("those of {}, which a latent of {} numbers gives already", model.config().name, dims.kv_latent),
        "\"singular k\" and \"singular v\" take ranks from it");
  const BlockWeights block = nth(model.weights().blocks, layer);
  const Index both = Index{dims.kv_heads} * (dims.d_head + dims.value_width()), group = dims.group(0);
  // The key heads side by side; each stands in every query head that shares it.
  const auto joined = [&](Tensor HeadWeights::*part, Index d) {
    const Index width = Index{dims.kv_heads} * d;
    const Tensor& first = block.heads[0].*part;
    if (!first.defined()) return Tensor();
    const bool matrix = first.rank() == 2;
    Tensor all = Tensor::uninitialized(matrix ? Shape{first.dim(0), width} : Shape{width});
    for (Index kv = 0; kv < dims.kv_heads; ++kv) {
      const Tensor& own = nth(block.heads, kv * group).*part;
      for (Index c = 0; c < d; ++c) {
        if (!matrix) all.ref(kv * d + c) = own.at(c);
        for (Index row = 0; matrix && row < own.dim(0); ++row) all.ref(row, kv * d + c) = own.at(row, c);
      }
    }
    return all;
  };
  const Index most = std::min<Index>(dims.d_model, both);
  if (rank < 1 || rank > most)
    throw Error(where, fmt::format("a rank from 1 to {}, that of keys and values together", most),
                std::to_string(rank));
  const Index key = dims.d_head, value = dims.value_width();
  return {factor_keys(joined(&HeadWeights::k, key), joined(&HeadWeights::v, value), rank),
          joined(&HeadWeights::k_bias, key), joined(&HeadWeights::v_bias, value)};
}

namespace {
/// Rows [first, last] of `out` (position, kv_head, d_head) = keys (or values) that `input` (position, d_model) gives
/// through the latent.
void through_latent(const LatentProjector& latent, const Tensor& input, bool values, Index first, Index last,
                    Tensor& out) {
  const Tensor& up = values ? latent.factors.up_v : latent.factors.up_k;
  const Tensor& bias = values ? latent.v_bias : latent.k_bias;
  const Tensor& down = latent.factors.down;
  const Index width = down.dim(0), rank = down.dim(1), d = out.dim(2);
  std::vector<double> code(static_cast<std::size_t>(rank));
  for (Index i = first; i <= last; ++i) {
    std::ranges::fill(code, 0.0);
    for (Index a = 0; a < width; ++a)
      for (Index r = 0; r < rank; ++r)
        nth(code, r) += static_cast<double>(input.at(i, a)) * static_cast<double>(down.at(a, r));
    for (Index h = 0; h < out.dim(1); ++h)
      for (Index c = 0; c < d; ++c) {
        double sum = bias.defined() ? static_cast<double>(bias.at(h * d + c)) : 0;
        for (Index r = 0; r < rank; ++r) sum += nth(code, r) * static_cast<double>(up.at(r, h * d + c));
        out.ref(i, h, c) = static_cast<float>(sum);
      }
  }
}

class LatentKeysStep final : public EditStep {
 public:
  LatentKeysStep(EditPlace place, int rank) : EditStep(std::move(place)) {
    const std::string where = this->place().where();
    const Model& model = pass().model(where);
    if (model.config().clip_qkv > 0)
      throw Error(where, "keys and values that are used as they are",
                  fmt::format("those of {}, which are cut to ± {}", model.config().name, model.config().clip_qkv));
    for (int layer = 0; layer < pass().scene().dims.layers; ++layer) {
      if (!pass().reaches_layer(*this, layer)) continue;
      pass().go_on();
      if (!target().layer && !model.config().own_keys(layer)) continue;  // it reads what others made of a latent
      latent_.emplace(layer, latent_projector(model, layer, rank, where));
    }
  }
  bool acts(Site site) const override {
    if (!latent_.contains(site.layer)) return false;
    return site.kind == SiteKind::k ||
           site.kind == output_site(pass().scene().model->config(), WeightMatrix::v, site.layer);
  }
  Turn turn(SiteKind) const override { return Turn::anew; }
  void act(Site site, EditedTensor& edited) override {
    through_latent(latent_.at(site.layer), input_, site.kind != SiteKind::k, first_row(), last_row(), edited.write());
  }
  bool sees(Site site) const override {
    return site.kind == attention_input(pass().scene().model->config(), site.layer);
  }
  void see(Site, const Tensor& value) override { input_ = value; }

 private:
  std::map<int, LatentProjector> latent_;  // by layer
  Tensor input_;                           // (position, d_model)
};

class LatentKeysEdit final : public EditOf<LatentKeys> {
 public:
  using EditOf::EditOf;
  const EditKind& kind() const override { return latent_keys_edit(); }
  std::string text() const override { return fmt::format("latent keys {}", value().rank); }
  void check(const std::string& where) const override {
    need(value().rank >= 1, where, "a rank from 1", std::to_string(value().rank));
  }
  std::unique_ptr<EditStep> make(EditPlace place) const override {
    return std::make_unique<LatentKeysStep>(std::move(place), value().rank);
  }
  std::string needs_of_softmax() const override { return "heads with keys and values"; }
  std::string needs_of_one_text() const override { return "keys and values of the text that looks at them"; }
};
}  // namespace

const EditKind& latent_keys_edit() {
  static const EditKind kind{
      {"latent keys RANK",
       "latent keys",
       to_say("Keys and values"),
       to_say("Keys and values pass through a latent of RANK numbers per token (MLA)."),
       LatentKeys{},
       false,
       {{EditField::Kind::whole, "RANK", to_say("Rank"), to_say("numbers kept per token"), 1, 256, true}}},
      [](EditWords& words) -> EditAction { return LatentKeys{words.number<int>()}; }};
  return kind;
}

std::shared_ptr<const Edit> edit_of(LatentKeys value) {
  return std::make_shared<LatentKeysEdit>(value);
}

}  // namespace headscope
