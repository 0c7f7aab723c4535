#pragma once
// How files lay matrices together or apart, beside what RawWeights hold. Private to core/model.

#include <utility>
#include <vector>

#include "core/model/usual_weights.h"

namespace headscope {

using Ranges = std::vector<std::pair<Index, Index>>;  ///< [begin, end) along the last axis

/// The ranges side by side: a view where they lie so already.
Tensor joined(const Tensor& x, const Ranges& ranges);

struct Qkv {
  Ranges q, k, v;
};
/// Where queries, keys and values lie in one matrix.
Qkv ranges_of(FusedQkv how, const ModelDims& dims);

/// Each column times its number; of a bias each number.
Tensor times_columns(const Tensor& x, const Tensor& by);
Tensor added_to_rows(const Tensor& x, const Tensor& row);
/// `x` with `count` rows of 0 before row `at`.
Tensor with_gap(const Tensor& x, Index at, Index count);
/// (in, out) of the kernel of a convolution in groups over one token, (out, in ÷ groups, 1): 0 between groups.
Tensor whole_matrix(const Tensor& kernel, Index in, Index groups);

}  // namespace headscope
