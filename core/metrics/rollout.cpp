#include "core/metrics/rollout.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <span>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/metrics/even_head.h"
#include "core/metrics/shares.h"

namespace headscope {

namespace {
/// Dinic's algorithm (1970) with real capacities: shortest augmenting paths, level by level.
class FlowGraph {
 public:
  explicit FlowGraph(std::size_t nodes) : first_(nodes, -1) {}
  void add(int from, int to, double capacity) {
    arcs_.push_back({to, nth(first_, from), capacity, capacity});
    nth(first_, from) = static_cast<int>(arcs_.size()) - 1;
    arcs_.push_back({from, nth(first_, to), 0, 0});
    nth(first_, to) = static_cast<int>(arcs_.size()) - 1;
  }
  double largest(int source, int sink, std::stop_token stop) {
    for (Arc& arc : arcs_) arc.left = arc.capacity;
    double total = 0;
    while (label(source, sink)) {
      if (stop.stop_requested()) throw Cancelled();
      next_ = first_;
      while (const double pushed = push(source, sink, std::numeric_limits<double>::infinity())) total += pushed;
    }
    return total;
  }

 private:
  static constexpr double empty = 1e-12;  // less than this is rounding
  struct Arc {
    int to, next;
    double capacity, left;
  };
  bool label(int source, int sink) {
    level_.assign(first_.size(), -1);
    nth(level_, source) = 0;
    std::queue<int> waiting({source});
    while (!waiting.empty()) {
      const int node = waiting.front();
      waiting.pop();
      for (int a = nth(first_, node); a >= 0; a = nth(arcs_, a).next) {
        const Arc& arc = nth(arcs_, a);
        int& level = nth(level_, arc.to);
        if (arc.left <= empty || level >= 0) continue;
        level = nth(level_, node) + 1;
        waiting.push(arc.to);
      }
    }
    return nth(level_, sink) >= 0;
  }
  /// As deep as there are layers, so recursion is safe.
  double push(int node, int sink, double most) {
    if (node == sink) return most;
    for (int& a = nth(next_, node); a >= 0; a = nth(arcs_, a).next) {
      Arc& arc = nth(arcs_, a);
      if (arc.left <= empty || nth(level_, arc.to) != nth(level_, node) + 1) continue;
      const double pushed = push(arc.to, sink, std::min(most, arc.left));
      if (pushed <= 0) continue;
      arc.left -= pushed;
      nth(arcs_, a ^ 1).left += pushed;
      return pushed;
    }
    return 0;
  }

  std::vector<Arc> arcs_;
  std::vector<int> first_, next_, level_;
};
}  // namespace

std::vector<Tensor> mixing_matrices(const Trace& trace, double residual, bool even) {
  const ModelDims& dims = trace.model.dims;
  const auto n = static_cast<Index>(trace.tokens.size());
  const auto wanted = static_cast<std::size_t>(dims.all_heads());
  if (wanted == 0 || trace.maps.size() != wanted)
    throw Error("attention through the layers", "the maps of all heads of all layers",
                std::to_string(trace.maps.size()) + " of " + std::to_string(wanted));
  if (trace.between_texts())
    throw Error("attention through the layers", "maps within one text, which can follow one another",
                "queries and keys of two texts");
  std::vector<Tensor> out;
  const TokenLinks links;
  std::vector<float> row(static_cast<std::size_t>(n));
  for (int layer = 0; layer < dims.layers; ++layer) {
    Tensor& mixed = out.emplace_back(Tensor::zeros({n, n}));
    const bool states = !dims.attends(layer);  // whose signed weights α count by their size
    const int heads = dims.heads_of(layer);
    for (int head = 0; head < heads; ++head) {
      const AttentionMap& map = trace.map({layer, head});
      if ((map.place().kind == MapKind::effective && !states) || map.n_query() != n || map.n_key() != n)
        throw Error("attention through the layers", "probabilities, as many queries as keys", "another kind of map");
      const AttentionMap& read = even ? even_head(map, links) : map;
      for (Index i = 0; i < n; ++i) {
        read.row(i, row);
        if (states && !even) to_shares(row);
        for (Index j = 0; j < n; ++j)
          mixed.ref(i, j) += static_cast<float>((1 - residual) / heads * static_cast<double>(nth(row, j)));
      }
    }
    for (Index i = 0; i < n; ++i) {
      mixed.ref(i, i) += static_cast<float>(residual);
      if (!states) to_shares({&mixed.ref(i, 0), static_cast<std::size_t>(n)});
    }
  }
  return out;
}

Tensor attention_rollout(const std::vector<Tensor>& mixing) {
  Tensor so_far = mixing.front().copy();
  const Index n = so_far.dim(0);
  std::vector<double> sum(static_cast<std::size_t>(n));
  for (std::size_t layer = 1; layer < mixing.size(); ++layer) {
    Tensor next = Tensor::zeros({n, n});
    const std::span<const float> below = so_far.values();
    // What a row reaches: in a causal model nothing behind it, which halves the work.
    std::vector<std::size_t> reach(static_cast<std::size_t>(n), 0);
    for (Index k = 0; k < n; ++k)
      for (Index j = n; j-- > 0 && nth(reach, k) == 0;)
        if (so_far.at(k, j) != 0) nth(reach, k) = static_cast<std::size_t>(j) + 1;
    for (Index i = 0; i < n; ++i) {
      std::ranges::fill(sum, 0);
      for (Index k = 0; k < n; ++k) {
        const auto weight = static_cast<double>(mixing[layer].at(i, k));
        if (weight == 0) continue;
        const float* row = below.data() + k * n;
        for (std::size_t j = 0; j < nth(reach, k); ++j) sum[j] += weight * static_cast<double>(row[j]);
      }
      for (Index j = 0; j < n; ++j) next.ref(i, j) = static_cast<float>(nth(sum, j));
    }
    so_far = next;
  }
  return so_far;
}

std::vector<double> attention_flow(const std::vector<Tensor>& mixing, Index query, std::stop_token stop) {
  const Index n = mixing.front().dim(0);
  const auto layers = static_cast<Index>(mixing.size());
  Index edges = 0;
  for (const Tensor& layer : mixing)
    for (const float weight : layer.values()) edges += weight > 0;
  if (edges > most_flow_edges)
    throw Error("attention flow", "a graph of at most " + std::to_string(most_flow_edges) + " edges",
                std::to_string(edges), "choose a shorter text; rollout has no such limit");
  FlowGraph graph(static_cast<std::size_t>((layers + 1) * n));  // node (level, position), level 0 = the tokens
  for (Index level = layers; level >= 1; --level)
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < n; ++j)
        if (const float weight = nth(mixing, level - 1).at(i, j); weight > 0)
          graph.add(static_cast<int>(level * n + i), static_cast<int>((level - 1) * n + j),
                    static_cast<double>(weight));
  std::vector<double> flow;
  for (Index key = 0; key < n; ++key)
    flow.push_back(graph.largest(static_cast<int>(layers * n + query), static_cast<int>(key), stop));
  return flow;
}

Tensor relative_to(const Tensor& value, const Tensor& chance) {
  Tensor out = Tensor::uninitialized(value.shape());
  for (Index i = 0; i < value.dim(0); ++i)
    for (Index j = 0; j < value.dim(1); ++j)
      out.ref(i, j) = chance.at(i, j) > 0 ? value.at(i, j) / chance.at(i, j) : std::numeric_limits<float>::quiet_NaN();
  return out;
}

}  // namespace headscope
