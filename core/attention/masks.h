#pragma once
// Masks by name: which keys a query may see, as a one-line predicate of query position i, key position j and the number
// of keys n. A spec such as "window 8" parses into an AttentionRule and prints itself again. "A & B" sees what both
// see, "A | B" what either sees, "not A" the rest, later keys included; ( ) group, and the words and, or, not mean the
// same. Causal by themselves: causal, window, chunks, dilated, strided, random, sink, lsh, reformer. Looking ahead:
// full, around, prefix, global, chosen, bigbird, documents, hidden, padding, which "& causal" turns into decoder masks.
// A row may end up without any key ("padding 3" on three tokens): its weights are all zero, and nothing is added to the
// residual stream there. A new mask is one entry in the table of mask_entries.cpp and its predicate in the test.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/attention/cell_set.h"
#include "core/trace/attention_rule.h"

namespace headscope {

struct MaskForm {
  std::string_view id;         ///< "global"
  std::string_view title;      ///< "Global tokens"
  std::string_view form;       ///< "global G window W": capitals stand for numbers
  std::string_view predicate;  ///< "j < G or i < G or |i − j| < W"
  std::string_view meaning;    ///< one sentence
  std::string_view source;     ///< paper, or ""
  std::string_view example;    ///< a spec that shows it on a short text, for thumbnails
  std::string_view numbers;    ///< what its numbers are, in order: "global tokens, window"; of a list the last
};

/// Every mask, in the order in which a chooser lists them.
std::span<const MaskForm> mask_forms();

/// Queries and keys of one head as they meet, (token, d_head), for masks that look at them.
struct MaskVectors {
  Tensor q, k;
};

/// Throws Error at `where`: names the forms for an unknown word, the bounds for a number outside them. Without
/// `vectors` a mask that hashes them shows all earlier keys.
std::shared_ptr<const AttentionRule> parse_mask(std::string_view spec, const std::string& where = "mask",
                                                const MaskVectors* vectors = nullptr);
/// "window W". REQUIRES width ≥ 1.
std::shared_ptr<const AttentionRule> window_rule(Index width);
/// "chunks C". REQUIRES size ≥ 1.
std::shared_ptr<const AttentionRule> chunks_rule(Index size);
/// "around W". REQUIRES width ≥ 1.
std::shared_ptr<const AttentionRule> around_rule(Index width);
/// Whether the mask depends on queries and keys ("lsh …").
bool hashes_vectors(std::string_view spec);

/// A number that stands in a mask's words, for a slider.
struct MaskNumber {
  std::string mask, name;    ///< "dilated", "step"
  double value = 0;          ///< as it stands there
  double low = 0, high = 1;  ///< what makes sense over `tokens` tokens: the value as it stands is inside
  int decimals = 0;          ///< 2 of a share
  double step = 1;           ///< values are multiples of it: 2 of a number of buckets
  bool logarithmic = false;  ///< spaced by ratios
};
/// Every number of a mask's words, in their order. Throws as parse_mask.
std::vector<MaskNumber> mask_numbers(std::string_view spec, Index tokens);
/// The mask with another value for the number of that index, rounded to what may stand there.
/// REQUIRES which < mask_numbers(spec, …).size().
std::string with_mask_number(std::string_view spec, std::size_t which, double value);
/// Every mask of the catalogue that is not painted, its numbers scaled from its example's to a text of so many tokens.
std::vector<std::string> masks_for(Index tokens);

/// What painting does to a mask over n_key keys: the cells opened or closed, whatever `spec` says of them. Strokes add
/// up: "causal & not cells 5:3-4 | cells 2:4". Throws as parse_mask.
std::string painted_mask(std::string_view spec, std::span<const MapCell> cells, bool visible, Index n_key);

}  // namespace headscope
