#include "core/edits/patch_edit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/edits/all.h"
#include "core/edits/edit_pass.h"
#include "core/edits/edit_step.h"
#include "core/trace/mixer_words.h"

namespace headscope {

namespace {
constexpr NamedValue<SiteKind> sites[] = {{"q", SiteKind::q},
                                          {"k", SiteKind::k},
                                          {"v", SiteKind::v},
                                          {"z", SiteKind::z},
                                          {"attn_out", SiteKind::attn_out},
                                          {"mlp_out", SiteKind::mlp_out},
                                          {"router_logits", SiteKind::router_logits},
                                          {"router_weights", SiteKind::router_weights},
                                          {"resid_pre", SiteKind::resid_pre},
                                          {"resid_mid", SiteKind::resid_mid},
                                          {"resid_post", SiteKind::resid_post}};

std::vector<std::string> site_names() {
  std::vector<std::string> names;
  for (const auto& [name, site] : sites) names.emplace_back(name);
  return names;
}

std::vector<std::int32_t> ids_of(const std::vector<Token>& tokens) {
  std::vector<std::int32_t> ids;
  for (const Token& token : tokens) ids.push_back(token.id);
  return ids;
}

class PatchStep final : public EditStep {
 public:
  PatchStep(EditPlace place, const Patch& patch)
      : EditStep(std::move(place)),
        site_(patch.site),
        source_(pass().scene().source(patch.text)),
        partner_(align_positions(patch.align, pass().scene().ids, ids_of(source_.queries()))) {
    const ModelDims& dims = pass().scene().dims;
    if (const auto layer = target().layer; layer && !has_site(dims, {site_, *layer}))
      throw Error(this->place().where(), fmt::format("a layer that has {}", info(site_).pattern),
                  dims.attends(*layer) ? fmt::format("layer {}", *layer)
                                       : fmt::format("layer {}, {}", *layer, mixer_words(dims, *layer)));
  }
  bool acts(Site site) const override { return site.kind == site_; }
  void act(Site site, EditedTensor& edited) override {
    Tensor& value = edited.write();  // (position, d) or (position, head, d)
    const Tensor& source = source_.sites.at(site);
    for (Index row = first_row(); row <= last_row(); ++row) {
      const int from = nth(partner_, row + pass().scene().first_row);
      if (from < 0) continue;
      if (value.rank() == 2) {
        for (Index j = 0; j < value.dim(1); ++j) value.ref(row, j) = source.at(from, j);
        continue;
      }
      const auto [head, end] = heads_of(value, site.layer);
      for (Index h = head; h < end; ++h)
        for (Index j = 0; j < value.dim(2); ++j) value.ref(row, h, j) = source.at(from, h, j);
    }
  }

 private:
  SiteKind site_;
  const Trace& source_;
  std::vector<int> partner_;  // in the source, by position; −1 = none
};

class PatchEdit final : public EditOf<Patch> {
 public:
  using EditOf::EditOf;
  const EditKind& kind() const override { return patch_edit(); }
  std::string text() const override {
    return fmt::format("patch {} from {}{}", name_in(sites, value().site), quote(value().text),
                       aligned_words(value().align));
  }
  void check(const std::string& where) const override {
    need(!value().text.empty(), where, "a text to patch from", "none");
    headscope::check(value().align, where);
    need(std::ranges::count(patch_sites(), value().site) == 1, where, "a site that can be patched",
         info(value().site).pattern);
  }
  std::unique_ptr<EditStep> make(EditPlace place) const override {
    return std::make_unique<PatchStep>(std::move(place), value());
  }
  bool whole_layer() const override {
    return value().site != SiteKind::q && value().site != SiteKind::k && value().site != SiteKind::v &&
           value().site != SiteKind::z;
  }
  std::vector<TakenFrom> takes() const override { return {{value().text, value().site}}; }
  const std::string* paired_text() const override { return &value().text; }
  const TextPairing* pairing() const override { return &value().align; }
  EditAction paired(TextPairing by) const override { return Patch{std::move(by), value().site, value().text}; }
  std::string needs_of_one_text() const override {
    const SiteKind site = value().site;
    const bool there =
        site == SiteKind::q || site == SiteKind::z || site == SiteKind::attn_out || site == SiteKind::resid_pre;
    return there ? "" : "a patch of q, z, attn_out or resid_pre";
  }
  /// Whom a patch of a key head that other heads share reaches besides (Ainslie et al., GQA, 2023); what a patch of the
  /// stream between two layers of a block does not reach.
  std::string note(const HeadTarget& target, const ModelInfo& model, int) const override {
    if (value().site == SiteKind::resid_pre && model.dims.paired && target.layer.value_or(1) % 2 == 1)
      return say(
          "patch {}: the attention of an odd layer reads what enters the layer before it, so that there the patch "
          "reaches the MLP and the stream alone",
          name_in(sites, value().site));
    int group = 1;  // of all layers at once: the largest
    bool differ = false;
    for (int layer = 0; layer < model.dims.layers; ++layer) {
      if (target.layer.value_or(layer) != layer || !model.dims.attends(layer)) continue;
      differ = differ || (group > 1 && model.dims.group(layer) != group);
      group = std::max(group, model.dims.group(layer));
    }
    if (!target.head || group == 1 || (value().site != SiteKind::k && value().site != SiteKind::v)) return "";
    std::vector<std::string> others;
    const int first = *target.head / group * group;
    for (int head = first; head < first + group; ++head)
      if (head != *target.head) others.push_back(text_of(HeadTarget{target.layer, head}));
    return say("patch {}: the key head is shared, so that it also reaches {}", name_in(sites, value().site),
               fmt::join(others, ", ")) +
           (differ ? fmt::format(" ({})", said("fewer of them in layers with more key heads")) : "");
  }
};
}  // namespace

const EditKind& patch_edit() {
  static const EditKind kind{
      {"patch SITE from \"TEXT\" [aligned start | end | tokens | I:J,…]",
       "patch",
       to_say("Activations"),
       to_say("Activations of another text at aligned positions."),
       Patch{TextPairing::By::tokens, SiteKind::z, ""},
       true,
       {{EditField::Kind::choice, "SITE", to_say("Activation"), "", 0, 0, false, site_names(), "z"}}},
      [](EditWords& words) -> EditAction {
        Patch patch;
        patch.site = words.one_of(sites);
        if (!words.take("from")) words.fail(words.all());
        patch.text = words.quoted();
        patch.align = read_aligned(words);
        return patch;
      }};
  return kind;
}

std::shared_ptr<const Edit> edit_of(Patch value) {
  return std::make_shared<PatchEdit>(std::move(value));
}

std::span<const SiteKind> patch_sites() {
  static const auto kinds = [] {
    std::vector<SiteKind> all;
    for (const auto& [name, kind] : sites) all.push_back(kind);
    return all;
  }();
  return kinds;
}

}  // namespace headscope
