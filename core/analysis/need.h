#pragma once
// What a reading tool takes out of a trace, or an Error that says how to get it.

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/model/config.h"
#include "core/trace/mixer_words.h"
#include "core/trace/trace.h"

namespace headscope {

/// Throws Error naming the site when it was not recorded.
inline const Tensor& need(const Trace& trace, Site site) {
  const auto found = trace.sites.find(site);
  if (found == trace.sites.end() && !has_site(trace.model.dims, site))
    throw Error(fmt::format("{}: layer {}", trace.model.name, site.layer),
                fmt::format("a layer that has {}", info(site.kind).pattern),
                of_mlp(site.kind)                      ? "one without an MLP"
                : trace.model.dims.attends(site.layer) ? "one that attends"
                                                       : mixer_words(trace.model.dims, site.layer));
  if (found == trace.sites.end())
    throw Error(name(site), "a trace that recorded it", "one that did not",
                "record the site " + std::string(info(site.kind).pattern) + " with the run");
  return found->second;
}

/// A position of the text; below 0 it counts from the end. Throws Error outside it.
inline Index position_of(const Trace& trace, Index given, const char* what) {
  const auto n = static_cast<Index>(trace.tokens.size());
  const Index at = given < 0 ? n + given : given;
  if (at < 0 || at >= n)
    throw Error(what, "a position from 0 to " + std::to_string(n - 1) + " (or -" + std::to_string(n) + " to -1)",
                std::to_string(given));
  return at;
}

/// The row of the logits that tells of this position: its own, of a picture the only one, which CLS tells. Throws Error
/// where the trace has none.
inline Index need_logit_row(const Trace& trace, Index position, const char* what) {
  need_logits(trace.model);
  if (trace.model.objective == Objective::image_class && position != 0)
    throw Error(what, "position 0, CLS, where a picture's classes are read", std::to_string(position));
  const bool all = trace.logits.defined() && trace.logits.dim(0) == static_cast<Index>(trace.tokens.size());
  if (!all && (trace.model.objective != Objective::image_class || !trace.logits.defined()))
    throw Error(what, "a trace with the logits of all positions", "one without");
  return position;
}

/// Throws Error where no single matrix stands between a stream and the logits.
inline void need_one_unembedding(const ModelConfig& config, const char* what) {
  if (config.vision && config.vision->class_heads > 1)
    throw Error(what, "a model with one matrix to its logits", config.name,
                "its class scores are the mean of what two tokens say, each by a matrix of its own");
}

/// Throws Error for a model whose heads have no queries, keys and values.
inline void need_attention(const ModelConfig& config, const char* what) {
  if (!config.dims.any_attends())
    throw Error(
        what, "a model with attention", config.name,
        fmt::format("it mixes tokens by {}, which has no queries, keys and values; its maps say what that amounts to",
                    mixer_words(config.dims, 0)));
}
/// The same of one layer.
inline void need_attention(const ModelConfig& config, int layer, const char* what) {
  need_attention(config, what);
  if (layer >= 0 && layer < config.dims.layers && !config.dims.attends(layer))
    throw Error(
        what, "a layer that attends", fmt::format("layer {} of {}", layer, config.name),
        fmt::format("it mixes tokens by {}, which has no queries, keys and values; its maps say what that amounts to",
                    mixer_words(config.dims, layer)));
}

/// Throws Error for a model of pictures where its words were asked for.
inline void need_words(const ModelConfig& config, const char* what) {
  if (config.vision)
    throw Error(what, "a model with a vocabulary of words that it reads", config.name,
                "this one reads patches of pictures, and its classes are what it says, never what it reads");
}

/// Throws Error when the vocabulary has no such token.
inline void check_token(const Trace& trace, std::int32_t token) {
  if (token < 0 || token >= trace.model.dims.vocab)
    throw Error("token", "an id from 0 to " + std::to_string(trace.model.dims.vocab - 1), std::to_string(token));
}

}  // namespace headscope
