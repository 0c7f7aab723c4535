#pragma once
// What a trace file says in words beside its tensors: the JSON under "headscope" in __metadata__. Private to core/io.

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/trace/hook_names.h"
#include "core/trace/trace.h"

namespace headscope {

inline constexpr const char* trace_format_name = "headscope-trace";
inline constexpr int trace_format_version = 1;

/// Extents and properties that all maps of one trace share.
struct TraceExtents {
  Index n_query = 0, n_key = 0, offset = 0;
  MapKind kind = MapKind::probability;            ///< of the first map
  std::optional<std::string> rule;                ///< AttentionRule::describe() of the first map, when known
  HookNames names = HookNames::transformer_lens;  ///< of the tensors
  std::map<HeadId, std::string> head_rules;       ///< of the heads that have another one
  std::map<HeadId, MapKind> head_kinds;           ///< likewise
  std::optional<PatchPicture> grid;               ///< when reading; its pixels are a tensor
  std::optional<SoundFrames> sound;               ///< likewise its spectrogram
};

/// Everything of `trace` that is not a tensor. Strings that are not UTF-8 become {"hex": "e2"}.
std::string describe_trace(const Trace& trace, const TraceExtents& extents);

/// The inverse: fills model, text, tokens (ids stay 0, they are a tensor), source, plan and milliseconds.
/// Throws Error at `where` naming the key on anything missing, of the wrong type or out of range.
Trace parse_trace_description(const std::string& json, const std::string& where, TraceExtents& extents);

}  // namespace headscope
