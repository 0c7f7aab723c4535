// hide patches grey | mean | noise SEED: what a model of pictures is given in place of some of its patches. By the
// linearity of the patch embedding E it acts where E's products stand, before positions are added: numbers p of a patch
// become p', E p + b becomes E p' + b.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/base/words.h"
#include "core/edits/all.h"
#include "core/edits/edit_pass.h"
#include "core/edits/edit_step.h"
#include "core/model/weights.h"

namespace headscope {

namespace {
struct HidePatches {
  enum class By {
    grey,  ///< p' = 0: the mean colour that the model's preparation takes away
    mean,  ///< the mean of all patches of this picture
    noise  ///< numbers drawn from N(0, 1)
  } by = By::grey;
  std::uint64_t seed = 0;
  bool operator==(const HidePatches&) const = default;
};
std::shared_ptr<const Edit> edit_of(HidePatches value);
constexpr NamedValue<HidePatches::By> patch_ways[] = {
    {"grey", HidePatches::By::grey}, {"mean", HidePatches::By::mean}, {"noise", HidePatches::By::noise}};

class HideStep final : public EditStep {
 public:
  HideStep(EditPlace place, HidePatches hide) : EditStep(std::move(place)), hide_(hide) {
    const std::string where = this->place().where();
    const ModelConfig& config = pass().model(where).config();
    if (!config.vision) throw Error(where, "a model of pictures", config.name + ", which reads text");
    if (target().layer) throw Error(where, "all layers, since patches stand before the first: *@3..7", "one of them");
    leading_ = config.vision->leading;
  }
  bool acts(Site site) const override { return site.kind == SiteKind::embed; }
  void act(Site, EditedTensor& edited) override {
    const ModelWeights weights = pass().model(this->place().where()).weights();
    Tensor& x = edited.write();  // (position, d_model)
    const Tensor mean = hide_.by == HidePatches::By::mean ? mean_of_patches(x) : Tensor();
    for (Index row = std::max(Index{first_row()}, leading_); row <= last_row(); ++row) {
      const Tensor instead = mean.defined()                       ? mean
                             : hide_.by == HidePatches::By::noise ? embedded_noise(weights, row)
                                                                  : weights.token_embedding.select(0, leading_);
      for (Index i = 0; i < x.dim(1); ++i) x.ref(row, i) = instead.at(i);
    }
  }

 private:
  Tensor mean_of_patches(const Tensor& x) const {
    Tensor mean = Tensor::zeros({x.dim(1)});
    const auto count = static_cast<float>(x.dim(0) - leading_);
    for (Index row = leading_; row < x.dim(0); ++row)
      for (Index i = 0; i < x.dim(1); ++i) mean.ref(i) += x.at(row, i) / count;
    return mean;
  }

  /// Of every position its own, whichever others are hidden.
  Tensor embedded_noise(const ModelWeights& weights, Index row) const {
    Random random(hide_.seed + static_cast<std::uint64_t>(row) * 0x9E3779B97F4A7C15ULL);
    const Tensor& by = weights.patch_embedding;  // (numbers of a patch, d_model)
    Tensor out = weights.token_embedding.select(0, leading_).copy();
    for (Index i = 0; i < by.dim(0); ++i) {
      const float number = random.normal();
      for (Index j = 0; j < by.dim(1); ++j) out.ref(j) += number * by.at(i, j);
    }
    return out;
  }

  HidePatches hide_;
  Index leading_ = 1;
};

class HideEdit final : public EditOf<HidePatches> {
 public:
  using EditOf::EditOf;
  const EditKind& kind() const override { return hide_patches_edit(); }
  std::string text() const override {
    return fmt::format("hide patches {}{}", name_in(patch_ways, value().by),
                       value().by == HidePatches::By::noise ? fmt::format(" {}", value().seed) : "");
  }
  void check(const std::string&) const override {}
  std::unique_ptr<EditStep> make(EditPlace place) const override {
    return std::make_unique<HideStep>(std::move(place), value());
  }
};
std::shared_ptr<const Edit> edit_of(HidePatches value) {
  return std::make_shared<HideEdit>(value);
}
}  // namespace

const EditKind& hide_patches_edit() {
  static const EditKind kind{
      {"hide patches grey | mean | noise SEED",
       "hide patches",
       to_say("Picture"),
       to_say("Patches of a picture are taken away before the model sees them: grey (the colour that its preparation "
              "takes for 0), the mean of all patches, or noise."),
       HidePatches{},
       false,
       {{EditField::Kind::whole, "SEED", to_say("Seed"), to_say("of the random numbers"), 0, 100, false, {}, "1"}}},
      [](EditWords& words) -> EditAction {
        HidePatches hide{.by = words.one_of(patch_ways)};
        if (hide.by == HidePatches::By::noise) hide.seed = words.number<std::uint64_t>();
        return hide;
      }};
  return kind;
}

}  // namespace headscope
