#include "core/attention/mask_entries.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/attention/lsh.h"
#include "core/attention/mask_shapes.h"
#include "core/base/special_values.h"
#include "core/base/words.h"

namespace headscope::mask_entries {

namespace {

using namespace mask_shapes;

KeyRange cut(KeyRange range, Index n) {
  const Index begin = std::clamp<Index>(range.begin, 0, n);
  return {begin, std::clamp(range.end, begin, n)};
}

/// The range without what `sees` says no to at its ends; {0, 0} when nothing is left.
template <class Sees>
KeyRange shrunk(KeyRange range, Sees sees) {
  while (range.begin < range.end && !sees(range.begin)) ++range.begin;
  while (range.begin < range.end && !sees(range.end - 1)) --range.end;
  return range.size() > 0 ? range : KeyRange{0, 0};
}

template <class Shape>
class Mask final : public AttentionRule {
 public:
  Mask(Shape shape, std::string spec) : shape_(std::move(shape)), spec_(std::move(spec)) {}
  KeyRange keys(Index query, Index n_key) const override {
    const KeyRange range = cut(shape_.bounds(query, n_key), n_key);
    if constexpr (Shape::solid)
      return range;
    else
      return shrunk(range, seeing(query));
  }
  bool plain() const override { return Shape::solid; }
  void apply(Index query, Index first_key, std::span<float> scores) const override {
    if constexpr (!Shape::solid) {
      const auto sees = seeing(query);
      for (std::size_t c = 0; c < scores.size(); ++c)
        if (!sees(first_key + static_cast<Index>(c))) scores[c] = -float_infinity;
    }
  }
  std::string describe() const override { return spec_; }

 private:
  /// Whether the query sees a key.
  auto seeing(Index query) const {
    if constexpr (requires { shape_.row(query); })
      return [row = shape_.row(query)](Index key) { return row.sees(key); };
    else
      return [this, query](Index key) { return shape_.sees(query, key); };
  }

  Shape shape_;
  std::string spec_;
};

Index whole(double number) {
  return static_cast<Index>(number);
}
template <class Shape>
std::shared_ptr<const AttentionRule> mask(Shape shape, std::string spec) {
  return std::make_shared<Mask<Shape>>(std::move(shape), std::move(spec));
}

}  // namespace

const std::vector<Entry>& entries() {
  static const std::vector<Entry> table{
      {{"causal", to_say("Causal"), "causal", "j ≤ i", to_say("Each token sees itself and what came before."),
        "Vaswani et al., Attention Is All You Need, 2017", "causal", ""},
       {},
       [](const MaskNumbers&, std::string spec) { return mask(Causal{}, std::move(spec)); }},
      {{"full", to_say("Full"), "full", "all", to_say("Each token sees every token, later ones too."), "", "full", ""},
       {},
       [](const MaskNumbers&, std::string spec) { return mask(Full{}, std::move(spec)); }},
      {{"window", to_say("Sliding window"), "window W", "0 ≤ i − j < W",
        to_say("Each token sees the last W, itself among them."), "Beltagy et al., Longformer, 2020", "window 4",
        "width"},
       {1},
       [](const MaskNumbers& x, std::string spec) { return mask(Window{whole(x[0])}, std::move(spec)); }},
      {{"around", to_say("Window on both sides"), "around W", "|i − j| < W",
        to_say("Each token sees itself and W − 1 neighbours on either side."), "Warner et al., ModernBERT, 2024",
        "around 3", "width"},
       {1},
       [](const MaskNumbers& x, std::string spec) { return mask(Around{whole(x[0])}, std::move(spec)); }},
      {{"chunks", to_say("Chunked attention"), "chunks C", "j ≤ i and ⌊i/C⌋ = ⌊j/C⌋",
        to_say("Each token sees what came before it in its own chunk of C tokens."), "Meta, The Llama 4 Herd, 2025",
        "chunks 4", "tokens of a chunk"},
       {1},
       [](const MaskNumbers& x, std::string spec) { return mask(Chunks{whole(x[0])}, std::move(spec)); }},
      {{"dilated", to_say("Dilated window"), "dilated W D", to_say("0 ≤ i − j < W·D and (i − j) mod D = 0"),
        to_say("Each token sees W tokens that lie D apart."), "Beltagy et al., Longformer, 2020", "dilated 4 2",
        "keys, step"},
       {1, 1},
       [](const MaskNumbers& x, std::string spec) {
         return mask(Dilated{whole(x[0]), whole(x[1])}, std::move(spec));
       }},
      {{"strided", to_say("Strided"), "strided S", to_say("j ≤ i and (i − j < S or (i − j) mod S = 0)"),
        to_say("Each token sees the last S, and every S-th before."), "Child et al., Sparse Transformers, 2019",
        "strided 4", "stride"},
       {1},
       [](const MaskNumbers& x, std::string spec) { return mask(Strided{whole(x[0])}, std::move(spec)); }},
      {{"global", to_say("Global tokens"), "global G window W", to_say("j < G or i < G or |i − j| < W"),
        to_say("The first G tokens see all and are seen by all; the rest see W − 1 neighbours on either side."),
        "Beltagy et al., Longformer, 2020", "global 2 window 3", "global tokens, window"},
       {0, 1},
       [](const MaskNumbers& x, std::string spec) {
         return mask(Global{whole(x[0]), whole(x[1])}, std::move(spec));
       }},
      {{"random", to_say("Random"), "random P seed S", to_say("j = i, or j < i with probability P"),
        to_say("Each token sees itself and a share P of what came before, drawn once per seed."),
        "Zaheer et al., Big Bird, 2020", "random 0.3 seed 1", "share, seed"},
       {0, 0},
       [](const MaskNumbers& x, std::string spec) {
         return mask(RandomKeys{x[0], static_cast<std::uint64_t>(x[1])}, std::move(spec));
       }},
      {{"prefix", to_say("Prefix"), "prefix P", to_say("j ≤ i or j < P"),
        to_say("The first P tokens see one another; the rest is causal."), "Raffel et al., T5, 2020", "prefix 4",
        "prefix"},
       {0},
       [](const MaskNumbers& x, std::string spec) { return mask(Prefix{whole(x[0])}, std::move(spec)); }},
      {{"sink", to_say("Sink and window"), "sink K window W", to_say("j ≤ i and (j < K or i − j < W)"),
        to_say("Each token sees the first K and the last W: what a streaming cache keeps."),
        "Xiao et al., StreamingLLM, 2023", "sink 1 window 4", "sink, window"},
       {0, 1},
       [](const MaskNumbers& x, std::string spec) {
         return mask(Sink{whole(x[0]), whole(x[1])}, std::move(spec));
       }},
      {{"padding", to_say("Padding"), "padding N", "j < n − N",
        to_say("The last N keys are padding, which nobody sees."), "", "padding 3", "padding"},
       {0},
       [](const MaskNumbers& x, std::string spec) { return mask(Padding{whole(x[0])}, std::move(spec)); }},
      {{"hidden", to_say("Keys hidden at random"), "hidden P seed S",
        to_say("j is not hidden, which each is with probability P"),
        to_say("Some keys are hidden from every query, their own included. (Not BERT's masking, which puts [MASK] in a "
               "token's place and hides no key.)"),
        "", "hidden 0.3 seed 2", "share, seed"},
       {0, 0},
       [](const MaskNumbers& x, std::string spec) {
         return mask(Hidden{x[0], static_cast<std::uint64_t>(x[1])}, std::move(spec));
       }},
      {{"chosen", to_say("Chosen global tokens"), "chosen A,B,… window W", to_say("i or j is listed, or |i − j| < W"),
        to_say("The listed tokens see all and are seen by all; the rest see W − 1 neighbours on either side."),
        "Beltagy et al., Longformer, 2020", "chosen 0,5 window 2", "window, token"},
       {1},
       [](const MaskNumbers& x, std::string spec) {
         return mask(Chosen{x.list, whole(x[0])}, std::move(spec));
       }},
      {{"bigbird", to_say("BigBird blocks"), "bigbird B window W global G random R seed S",
        to_say("with I = ⌊i/B⌋, J = ⌊j/B⌋: |I − J| < W or I < G or J < G or J is one of R blocks drawn from G … I − W, "
               "each once"),
        to_say(
            "Blocks of B tokens see neighbouring blocks, the first G, and R earlier ones outside both, drawn once per "
            "seed."),
        "Zaheer et al., Big Bird, 2020", "bigbird 2 window 1 global 1 random 1 seed 1",
        "block, window, global blocks, random blocks, seed"},
       {1, 1, 0, 0, 0},
       [](const MaskNumbers& x, std::string spec) {
         return mask(Blocks{whole(x[0]), whole(x[1]), whole(x[2]), whole(x[3]), static_cast<std::uint64_t>(x[4])},
                     std::move(spec));
       }},
      {{"documents", to_say("Documents"), "documents A,B,…", to_say("no document begins in (min(i, j), max(i, j)]"),
        to_say("Several texts in one row: each token sees its own document, which begins at one of the positions."),
        "Raffel et al., T5, 2020 (packing)", "documents 3,6", "document at"},
       {},
       [](const MaskNumbers& x, std::string spec) { return mask(Documents{x.list}, std::move(spec)); }},
      {{"lsh", to_say("Hash buckets"), "lsh B rounds R seed S",
        to_say("j = i, or j < i and the hashes of q_i and k_j are equal in one of R rounds; causal where there are no "
               "q, k"),
        to_say(
            "Queries meet the keys that point the same way: both are hashed into B buckets (an even number), R times."),
        "Kitaev et al., Reformer, 2020", "lsh 4 rounds 2 seed 1", "buckets, rounds, seed"},
       {2, 1, 0},
       [](const MaskNumbers& x, std::string spec) -> std::shared_ptr<const AttentionRule> {
         const LshSettings settings{static_cast<int>(x[0]), static_cast<int>(x[1]), static_cast<std::uint64_t>(x[2])};
         if (x.vectors) return lsh_rule(x.vectors->q, x.vectors->k, settings, std::move(spec));
         return mask(Causal{}, std::move(spec));
       }},
      {{"reformer", to_say("Hash buckets, shared q and k"), "reformer B rounds R seed S",
        to_say("j < i and the hashes of q_i and q_j are equal in one of R rounds; j = i where there is no other; "
               "causal where there are no q"),
        to_say("As Reformer does it: keys are queries too, so both are hashed as queries, and a token sees itself only "
               "when no other shares its bucket. The model's own keys still make the scores."),
        "Kitaev et al., Reformer, 2020, section 2", "reformer 4 rounds 2 seed 1", "buckets, rounds, seed"},
       {2, 1, 0},
       [](const MaskNumbers& x, std::string spec) -> std::shared_ptr<const AttentionRule> {
         const LshSettings settings{static_cast<int>(x[0]), static_cast<int>(x[1]), static_cast<std::uint64_t>(x[2])};
         if (x.vectors) return shared_lsh_rule(x.vectors->q, settings, std::move(spec));
         return mask(Causal{}, std::move(spec));
       }},
      {{"cells", to_say("Painted"), "cells QUERY:KEY …",
        to_say("(i, j) is listed; either may be a range, as in 5-9:0-2"),
        to_say("Each token sees the cells that somebody painted."), "",
        "cells 0:0 1:0-1 2:0 2:2 3-4:0 3-4:2-3 5:0 5:3 5:5 6:0 6:3 6:5-6 7:0 7:5-7", ""},
       {},
       nullptr},
  };
  return table;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (true) {
    const auto begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return words;
    const auto end = std::min(text.find_first_of(" \t", begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    text.remove_prefix(end);
  }
}

bool is_list(std::string_view form_word) {
  return form_word.find(',') != std::string_view::npos;
}
bool is_number(std::string_view form_word) {
  return form_word.size() == 1 && form_word[0] >= 'A' && form_word[0] <= 'Z';
}

}  // namespace headscope::mask_entries

namespace headscope {

std::shared_ptr<const AttentionRule> window_rule(Index width) {
  return mask_entries::mask(mask_shapes::Window{width}, fmt::format("window {}", width));
}

std::shared_ptr<const AttentionRule> chunks_rule(Index size) {
  return mask_entries::mask(mask_shapes::Chunks{size}, fmt::format("chunks {}", size));
}

std::shared_ptr<const AttentionRule> around_rule(Index width) {
  return mask_entries::mask(mask_shapes::Around{width}, fmt::format("around {}", width));
}

}  // namespace headscope
