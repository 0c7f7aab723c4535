#pragma once
// What a reading tool takes out of a trace, or an Error that says how to get it.

#include "core/base/error.h"
#include "core/trace/trace.h"

namespace headscope {

/// Throws Error naming the site when it was not recorded.
inline const Tensor& need(const Trace& trace, Site site) {
  const auto found = trace.sites.find(site);
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

/// Throws Error when the vocabulary has no such token.
inline void check_token(const Trace& trace, std::int32_t token) {
  if (token < 0 || token >= trace.model.dims.vocab)
    throw Error("token", "an id from 0 to " + std::to_string(trace.model.dims.vocab - 1), std::to_string(token));
}

}  // namespace headscope
