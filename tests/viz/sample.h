#pragma once
// Traces with made-up but lawful attention, for pictures: every row a softmax of seeded random scores.

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/trace/trace.h"
#include "viz/export/pango_text.h"
#include "viz/scene/theme.h"
#include "viz/scene/token_axis.h"

namespace headscope::testing {

/// Words of very different width and script, so that layouts are tried and not flattered.
inline std::vector<std::string> sample_labels(Index n) {
  static const std::vector<std::string> words{"When",
                                              "␣Mary",
                                              "␣and",
                                              "␣a",
                                              ",",
                                              "␣visualization",
                                              "<|endoftext|>",
                                              "␣the",
                                              "i",
                                              "⏎",
                                              "<E2>",
                                              "你好",
                                              "␣مرحبا",
                                              "WWWWWWWW",
                                              "␣",
                                              "->",
                                              "\"",
                                              "␣naïve",
                                              "&amp;",
                                              "한국어",
                                              "🙂",
                                              "␣once",
                                              ".",
                                              "x̂",
                                              "␣upon",
                                              "a_long_identifier_of_someone's_program"};
  std::vector<std::string> out;
  for (Index i = 0; i < n; ++i) out.push_back(words[static_cast<std::size_t>(i * 7 + i / 26) % words.size()]);
  return out;
}

inline Tensor sample_weights(Index n_query, Index n_key, Index offset, bool causal, std::uint64_t seed,
                             double sharpness = 3) {
  Random random(seed);
  Tensor out = Tensor::zeros({n_query, n_key});
  for (Index q = 0; q < n_query; ++q) {
    const Index visible = causal ? std::min(n_key, offset + q + 1) : n_key;
    double sum = 0;
    for (Index k = 0; k < visible; ++k) {
      const double e = std::exp(sharpness * random.normal());
      out.ref(q, k) = static_cast<float>(e);
      sum += e;
    }
    for (Index k = 0; k < visible; ++k) out.ref(q, k) = static_cast<float>(out.at(q, k) / sum);
  }
  return out;
}

inline AttentionMap dense_map(int layer, int head, Tensor weights, std::shared_ptr<const AttentionRule> rule,
                              Index offset = 0, MapKind kind = MapKind::probability) {
  return AttentionMap::dense({layer, head, head, offset, kind}, std::move(weights), std::move(rule),
                             std::make_shared<HeadStats>());
}

inline Trace empty_trace(Index tokens) {
  Trace trace;
  trace.model.name = "sample";
  trace.source = "headscope cpu f32";
  for (std::string& label : sample_labels(tokens)) trace.tokens.push_back({1, label, label, -1, -1});
  trace.text = "When Mary and John went to the store, & <John> \"gave\" a drink to 你好 مرحبا 🙂";
  return trace;
}

inline Trace sample_trace(Index n, int layers, int heads, bool causal = true) {
  Trace trace = empty_trace(n);
  trace.model.dims.layers = layers;
  trace.model.dims.heads = heads;
  for (int layer = 0; layer < layers; ++layer)
    for (int head = 0; head < heads; ++head)
      trace.maps.push_back(dense_map(layer, head,
                                     sample_weights(n, n, 0, causal, static_cast<std::uint64_t>(layer * 100 + head)),
                                     causal ? causal_rule() : full_rule()));
  return trace;
}

/// Queries after `offset` cached tokens, or another sequence's keys: a map that is no square.
inline Trace rectangular_trace(Index n_query, Index n_key, Index offset, bool causal) {
  Trace trace = empty_trace(std::max(n_key, offset + n_query));
  trace.model.dims.layers = trace.model.dims.heads = 1;
  trace.maps.push_back(
      dense_map(0, 0, sample_weights(n_query, n_key, offset, causal, 5), causal ? causal_rule() : full_rule(), offset));
  return trace;
}

/// The four weights of a causal 3 × 3 map that tests know by heart: rows (1), (¼, ¾), (0.2, 0, 0.8).
inline Trace known_trace() {
  Trace trace = empty_trace(0);
  for (const char* label : {"When", "␣John", "<|endoftext|>"}) trace.tokens.push_back({1, label, label, -1, -1});
  trace.model.dims.layers = trace.model.dims.heads = 1;
  const float weights[] = {1, 0, 0, 0.25f, 0.75f, 0, 0.2f, 0, 0.8f};
  trace.maps.push_back(dense_map(0, 0, Tensor::from({3, 3}, weights), causal_rule()));
  return trace;
}

/// 20 keys of 0.1 s, of which the sound fills 10; its pitch rises from the lowest mel to the highest.
inline Trace heard_trace() {
  Tensor log_mel = Tensor::full({40, 8}, -1.0f);
  for (Index frame = 0; frame < 20; ++frame) log_mel.ref(frame, frame * 8 / 20) = 1.0f;
  Trace trace;
  trace.sound = std::make_shared<const SoundFrames>(SoundFrames{log_mel, 0.05, 20, 1.0});
  trace.tokens.resize(20);
  for (std::size_t i = 0; i < 20; ++i) trace.tokens[i].label = std::to_string(i);
  trace.query_tokens.resize(1);
  Tensor weights = Tensor::full({1, 20}, 0.0f);
  weights.ref(0, 4) = 0.5f, weights.ref(0, 5) = 0.25f, weights.ref(0, 18) = 0.25f;
  trace.maps.push_back(
      AttentionMap::dense({.between_texts = true}, weights, nullptr, stats_of_weights(weights, nullptr)));
  return trace;
}

}  // namespace headscope::testing
