#include "core/edits/post_norm_edit.h"

#include <algorithm>
#include <cassert>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/edits/all.h"
#include "core/edits/edit_pass.h"
#include "core/edits/edit_step.h"
#include "core/edits/switch_off_edit.h"
#include "core/model/weights.h"

namespace headscope {

namespace {
class PostNormStep final : public EditStep {
 public:
  explicit PostNormStep(EditPlace place) : EditStep(std::move(place)) {
    assert(pass().scene().backend);
    if (const ModelConfig& c = pass().model(this->place().where()).config();
        c.norm_place != NormPlace::before || c.dims.parallel || c.norm == NormKind::none || c.cross() || c.dims.paired)
      throw Error(this->place().where(), "blocks whose norms stand before attention and before the MLP",
                  c.name + (c.dims.parallel            ? ", whose attention and MLP read the same stream"
                            : c.norm == NormKind::none ? ", which has none"
                            : c.dims.paired            ? ", whose layers read in pairs what enters the first"
                            : c.cross()                ? ", whose blocks have a third norm, of cross-attention"
                                                       : ", which has norms behind them already"));
    for (const BlockWeights& block : pass().model(this->place().where()).weights().blocks)
      norms_.emplace_back(block.ln1, block.ln2);
  }
  bool acts(Site site) const override { return before(site.kind) || behind(site.kind); }
  /// At a norm: what stood before it. Behind a sum: the norm of it. Of several edits that move a row's norm one does.
  void act(Site site, EditedTensor& edited) override {
    const EditScene& scene = pass().scene();
    const auto& [first_norm, second_norm] = nth(norms_, site.layer);
    const bool behind_attention = site.kind == SiteKind::resid_mid || !scene.dims.has_mlp(site.layer);
    const Tensor& value = edited.read();
    const Tensor moved =
        before(site.kind)
            ? input_
            : normalized(scene.model->config(), behind_attention ? first_norm : second_norm, *scene.backend, value);
    std::vector<bool> done(static_cast<std::size_t>(value.dim(0)), false);
    for (const auto& other : pass().steps()) {
      if (other.get() != this && other->target().reaches_layer(site.layer) &&
          (moves_before(*other) || (behind(site.kind) && stays_out(*other, behind_attention))))
        for (int row = std::max(other->first() - scene.first_row, 0); row <= other->last() - scene.first_row; ++row)
          nth(done, row) = true;
    }
    if (first_row() == 0 && last_row() == value.dim(0) - 1 && std::ranges::none_of(done, std::identity()))
      return edited.replace(moved);  // the tensor itself: gradients flow through it
    Tensor& rows = edited.write();
    for (Index i = first_row(); i <= last_row(); ++i) {
      if (nth(done, i)) continue;
      for (Index j = 0; j < rows.dim(1); ++j) rows.ref(i, j) = moved.at(i, j);
    }
  }
  bool sees(Site site) const override { return site.kind == SiteKind::resid_pre || site.kind == SiteKind::resid_mid; }
  void see(Site, const Tensor& value) override { input_ = value; }

 private:
  static bool before(SiteKind site) { return site == SiteKind::ln1_normalized || site == SiteKind::ln2_normalized; }
  static bool behind(SiteKind site) { return site == SiteKind::resid_mid || site == SiteKind::resid_post; }
  /// Whether `other` comes before this one and moves norms, too.
  bool moves_before(const EditStep& other) const {
    for (const auto& step : pass().steps()) {
      if (step.get() == this) return false;
      if (step.get() == &other) return other.action().as<PostNorm>() != nullptr;
    }
    return false;
  }
  /// A norm that is switched off does not move either.
  static bool stays_out(const EditStep& other, bool behind_attention) {
    const auto* off = other.action().as<SwitchOff>();
    return off && off->part == (behind_attention ? SwitchOff::Part::ln1 : SwitchOff::Part::ln2);
  }

  std::vector<std::pair<NormWeights, NormWeights>> norms_;  // by layer: the block's two
  Tensor input_;                                            // what the next norm is given
};

class PostNormEdit final : public EditOf<PostNorm> {
 public:
  using EditOf::EditOf;
  const EditKind& kind() const override { return post_norm_edit(); }
  std::string text() const override { return "post norm"; }
  void check(const std::string&) const override {}
  std::unique_ptr<EditStep> make(EditPlace place) const override { return step_of<PostNormStep>(std::move(place)); }
  bool row_by_row(int) const override { return true; }
  std::string needs_of_one_text() const override { return "a block with its attention and MLP"; }
  bool passes_gradients() const override { return true; }
};
}  // namespace

const EditKind& post_norm_edit() {
  static const EditKind kind{
      {"post norm", "post norm", to_say("The block"),
       to_say("Each norm of the block moves behind its sum: norm(x + part(x)). Not how the model was trained."),
       PostNorm{}, false},
      [](EditWords&) -> EditAction { return PostNorm{}; }};
  return kind;
}

std::shared_ptr<const Edit> edit_of(PostNorm value) {
  return std::make_shared<PostNormEdit>(value);
}

}  // namespace headscope
