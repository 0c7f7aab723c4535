#include "core/edits/freeze_pattern_edit.h"

#include <algorithm>
#include <span>
#include <vector>

#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/edits/all.h"
#include "core/edits/edit_pass.h"
#include "core/edits/edit_step.h"

namespace headscope {

namespace {
/// Gives a row, of which the first `seen` keys count, the weights of `source` at paired keys; partner[key] is the key
/// of `source`, or −1. A row of which no weight finds its key stays as it is. Weights that are `shares` add up to what
/// they did; others are taken as they are.
void freeze_row(std::span<const float> source, std::span<const int> partner, Index seen, bool shares,
                std::span<float> row) {
  double all = 0, taken = 0;
  for (const float weight : source) all += static_cast<double>(weight);
  std::vector<float> found(row.size(), 0.0f);
  std::size_t used = 0;  // keys of the source that carry weight and are paired
  for (std::size_t key = 0; key < row.size() && static_cast<Index>(key) < seen; ++key) {
    const int from = partner[key];
    if (from < 0 || from >= static_cast<int>(source.size())) continue;
    found[key] = nth(source, from);
    taken += static_cast<double>(found[key]);
    used += found[key] != 0;
  }
  if (shares ? !(taken > 0) : used == 0) return;
  // Nothing lost: the very same weights. Else those that are left share what is lost.
  if (shares && used < static_cast<std::size_t>(std::ranges::count_if(
                           source, [](float weight) { return weight != 0; })))
    for (float& weight : found) weight = static_cast<float>(static_cast<double>(weight) * (all / taken));
  std::ranges::copy(found, row.begin());
}

class FreezeStep final : public EditStep {
 public:
  FreezeStep(EditPlace place, const FreezePattern& freeze)
      : EditStep(std::move(place)),
        source_(pass().scene().source(freeze.text)),
        keys_(align_positions(freeze.align, pass().scene().key_ids(), source_.ids())),
        queries_(source_.between_texts() ? align_positions(freeze.align, pass().scene().ids, query_ids()) : keys_) {}
  bool acts(Site site) const override { return site.kind == SiteKind::pattern; }
  bool writes_rows() const override { return true; }
  void act(Site site, EditedTensor& edited) override {
    Tensor& pattern = edited.write();  // (head, query, key)
    const EditScene& scene = pass().scene();
    const bool ahead = scene.stack == Stack::cross || (scene.model && !scene.model->config().causal);
    each_row(pattern.dim(0), [&](Index head, Index row) {
      const Index query = row + pass().scene().first_row;
      const AttentionMap& map = source_.map({site.layer, static_cast<int>(head)});
      const int from = nth(queries_, query);
      if (from < 0 || from >= map.n_query()) return;
      std::vector<float> frozen(static_cast<std::size_t>(map.n_key()));
      map.row(from, frozen);
      freeze_row(frozen, keys_, ahead ? pattern.dim(2) : query + 1, scene.dims.attends(site.layer),
                 {&pattern.ref(head, row, 0), static_cast<std::size_t>(pattern.dim(2))});
      pass().outputs.forget(head, row);
    });
  }

 private:
  std::vector<std::int32_t> query_ids() const {
    std::vector<std::int32_t> ids;
    for (const Token& token : source_.queries()) ids.push_back(token.id);
    return ids;
  }

  const Trace& source_;
  std::vector<int> keys_, queries_;  // in the source, by position; −1 = none
};

class FreezeEdit final : public EditOf<FreezePattern> {
 public:
  using EditOf::EditOf;
  const EditKind& kind() const override { return freeze_pattern_edit(); }
  std::string text() const override {
    return value().text.empty() ? "freeze pattern"
                                : "freeze pattern from " + quote(value().text) + aligned_words(value().align);
  }
  void check(const std::string& where) const override {
    need(!value().text.empty() || value().align == TextPairing{}, where, "a text whose positions are aligned", "none");
    headscope::check(value().align, where);
  }
  std::unique_ptr<EditStep> make(EditPlace place) const override {
    return std::make_unique<FreezeStep>(std::move(place), value());
  }
  std::vector<TakenFrom> takes() const override { return {{value().text, SiteKind::pattern}}; }
  const std::string* paired_text() const override { return value().text.empty() ? nullptr : &value().text; }
  const TextPairing* pairing() const override { return value().text.empty() ? nullptr : &value().align; }
  EditAction paired(TextPairing by) const override { return FreezePattern{value().text, std::move(by)}; }
  bool writes_weights() const override { return true; }
};
}  // namespace

const EditKind& freeze_pattern_edit() {
  static const EditKind kind{{"freeze pattern [from \"TEXT\" [aligned start | end | tokens | I:J,…]]", "freeze pattern",
                              to_say("Attention weights"),
                              to_say("The pattern from before the edits, or from another text."), FreezePattern{}},
                             [](EditWords& words) -> EditAction {
                               if (!words.take("from")) return FreezePattern{};
                               FreezePattern freeze{words.quoted()};
                               freeze.align = read_aligned(words);
                               return freeze;
                             }};
  return kind;
}

std::shared_ptr<const Edit> edit_of(FreezePattern value) {
  return std::make_shared<FreezeEdit>(std::move(value));
}

}  // namespace headscope
