#include "core/edits/share_keys_edit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "core/attention/key_sharing.h"
#include "core/base/error.h"
#include "core/base/words.h"
#include "core/edits/all.h"
#include "core/edits/edit_pass.h"
#include "core/edits/edit_step.h"
#include "core/model/weights.h"

namespace headscope {

namespace {
class ShareKeysStep final : public EditStep {
 public:
  ShareKeysStep(EditPlace place, int groups) : EditStep(std::move(place)), groups_(groups) {
    const ModelDims& dims = pass().scene().dims;
    int heads = 0;
    for (int layer = 0; layer < dims.layers; ++layer)
      if (pass().reaches_layer(*this, layer)) {
        heads = dims.widths_of(layer).kv_heads;
        if (groups > heads || heads % groups != 0) break;
      }
    if (groups <= heads && heads % groups == 0) return;
    std::vector<int> possible;
    for (int g = 1; g <= heads; ++g)
      if (heads % g == 0) possible.push_back(g);
    throw Error(this->place().where(),
                fmt::format("{} key heads in equal groups: {}", heads, fmt::join(possible, ", ")),
                std::to_string(groups));
  }
  /// Of both as their matrices make them: values that are normed still have their norm before them.
  bool acts(Site site) const override {
    const Model* const model = pass().scene().model;
    return site.kind == SiteKind::k ||
           site.kind == (model ? output_site(model->config(), WeightMatrix::v, site.layer) : SiteKind::v);
  }
  void act(Site, EditedTensor& edited) override { pool_heads(edited.write(), groups_, first_row(), last_row()); }

 private:
  int groups_;
};

class ShareKeysEdit final : public EditOf<ShareKeys> {
 public:
  using EditOf::EditOf;
  const EditKind& kind() const override { return share_keys_edit(); }
  std::string text() const override { return fmt::format("share keys {}", value().groups); }
  void check(const std::string& where) const override {
    need(value().groups >= 1, where, "at least 1 group of heads", std::to_string(value().groups));
  }
  std::unique_ptr<EditStep> make(EditPlace place) const override {
    return std::make_unique<ShareKeysStep>(std::move(place), value().groups);
  }
  std::string needs_of_softmax() const override { return "heads with keys and values"; }
  std::string needs_of_one_text() const override { return "keys and values of the text that looks at them"; }
};
}  // namespace

const EditKind& share_keys_edit() {
  static const EditKind kind{
      {"share keys GROUPS",
       "share keys",
       to_say("Keys and values"),
       to_say("Keys and values of heads become the mean of their group: fewer to keep (GQA, MQA)."),
       ShareKeys{},
       false,
       {{EditField::Kind::whole, "GROUPS", to_say("Groups"), to_say("1: all heads share keys and values"), 1, 16}}},
      [](EditWords& words) -> EditAction { return ShareKeys{words.number<int>()}; }};
  return kind;
}

std::shared_ptr<const Edit> edit_of(ShareKeys value) {
  return std::make_shared<ShareKeysEdit>(value);
}

}  // namespace headscope
