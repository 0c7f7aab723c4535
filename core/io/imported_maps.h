#pragma once
// Attention that is known only by its weights, as maps with statistics. Private to core/io.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/trace/trace.h"

namespace headscope {

/// Throws Error at `where` naming the first cell that is infinite or not a number. `weights` (head, query, key).
void require_finite(const Tensor& weights, const std::string& where);

/// True when no query gives weight to a key after it: every weight above the diagonal is exactly 0. `weights` (head,
/// query, key).
bool is_causal(const Tensor& weights, Index offset);

/// True when no weight is negative and every row sums to 1 within `tolerance`.
bool is_probability(const Tensor& weights, double tolerance);

/// Throws Error at `where` when maps of (layers · heads) with n_query rows and n_key columns would take more than
/// `available` bytes together: a map of one cell, four bytes in the file, takes over a thousand with its statistics.
void require_room(double maps, Index n_query, Index n_key, std::uint64_t available, const std::string& where);

/// One dense map per head, views of `weights` (head, query, key), with the statistics of stats_of_weights().
/// `dims` says which key heads they read; `links` may be null. Their kind is the place's, or what `kind` says.
void append_maps(std::vector<AttentionMap>& maps, const AttentionMap::Place& place, const Tensor& weights,
                 const ModelDims& dims,
                 const std::function<std::shared_ptr<const AttentionRule>(int head, const Tensor& weights)>& rule,
                 const TokenLinks* links, const std::function<MapKind(int head)>& kind = {});

}  // namespace headscope
