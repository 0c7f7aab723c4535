#pragma once
// The two codes of positions that everybody thinks of first, put to a model's own token embeddings: the number of the
// position (0, 1, 2 …), and the share of the text that lies before it (0 … 1), added to every dimension. Beside them
// sinusoids (Vaswani et al., Attention Is All You Need, 2017). Nothing is trained: these are lengths and angles.

#include <array>
#include <string_view>
#include <vector>

#include "core/base/words.h"
#include "core/model/model.h"

namespace headscope {

struct NaiveCodes {
  enum Code { counted, squeezed, sinusoids };
  static constexpr std::array<std::string_view, 3> titles{"0, 1, 2 …", "0 … 1", to_say("sinusoids")};

  /// Positions 0, 1, 2, 4 … up to four times the context.
  std::vector<double> positions;
  /// By code and position: mean cosine between the vectors of two different words that stand there, code added. 1 = the
  /// words cannot be told apart. "0 … 1" is that of a text of four times the context.
  std::array<std::vector<double>, 3> likeness;
  /// Lengths of texts, 2, 4, 8 … up to four times the context.
  std::vector<double> lengths;
  /// By code and length of text: how far the codes of neighbours are apart, mean over the text, ÷ the mean length of a
  /// word's embedding.
  std::array<std::vector<double>, 3> step;
  double embedding_length = 0;  ///< mean |E[token]|
  int words = 0;                ///< of the vocabulary, evenly drawn from it, that were compared: every pair
  int dimensions = 0, context = 0;
};

/// Throws Error for a model that has no words (of pictures), or one.
NaiveCodes naive_codes(const Model& model);

/// Mean cosine of all pairs of rows of `embeddings` (word, dimension) after `code` (dimension) was added to each.
double mean_likeness(const Tensor& embeddings, std::span<const double> code);

}  // namespace headscope
