#pragma once
// Learned absolute positions (Gehring et al., 2017; GPT-2, BERT): a table of vectors, one per position, added to the
// token embeddings. What it has learnt shows in which positions it takes for alike.

#include "core/tensor/tensor.h"

namespace headscope {

/// cos of the angle between rows, (row, row); 0 beside a row of zeros. `centered`: the mean row, which all share, is
/// taken off before.
Tensor cosine_similarity(const Tensor& table, bool centered = false);

/// Euclidean length of every row.
Tensor row_norms(const Tensor& table);

}  // namespace headscope
