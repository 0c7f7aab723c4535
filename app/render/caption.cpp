#include "app/render/caption.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/nth.h"
#include "core/base/version.h"
#include "core/base/words.h"
#include "core/trace/map_kinds.h"
#include "viz/scene/annotations.h"
#include "viz/scene/token_axis.h"

namespace headscope {

namespace {
std::string position(const std::vector<Token>& tokens, Index at) {
  if (at < 0 || at >= static_cast<Index>(tokens.size())) return std::to_string(at);
  return fmt::format("{} “{}”", at, nth(tokens, at).label);
}

/// Which weights these are.
std::string what(const Trace& trace, const PictureRequest& request) {
  std::vector<std::string> heads;
  for (const HeadId head : request.heads) heads.push_back(to_string(head));
  const std::string query = request.query ? position(trace.queries(), *request.query) : "";
  if (heads.empty() && request.kind == PictureRequest::Kind::patches)
    return say("Attention weights of query {} over the picture, in all {} heads", query, trace.maps.size());
  if (heads.empty() && request.query)
    return say("Attention weights of query {} in all {} heads, a row each", query, trace.maps.size());
  if (heads.empty()) return say("Attention weights of all {} heads, a map each", trace.maps.size());
  if (heads.size() > 1) return say("Attention weights of heads {}", fmt::join(heads, ", "));
  switch (request.kind) {
    case PictureRequest::Kind::bars:
      return say("Attention weights of query {} in head {}", query, heads.front());
    case PictureRequest::Kind::patches:
      return say("Attention weights of query {} over the picture, in head {}", query, heads.front());
    case PictureRequest::Kind::steps:
      return say("Scores, mask and attention weights of head {}", heads.front());
    case PictureRequest::Kind::split:
      return say("The score of query {} and key {} in head {} by {}", query,
                 position(trace.tokens, request.key.value_or(0)), heads.front(),
                 request.rotary ? said("rotary pair") : said("dimension"));
    default:
      return say("Attention weights of head {}", heads.front());
  }
}

std::string how_drawn(const Trace& trace, const PictureRequest& request) {
  switch (request.kind) {
    case PictureRequest::Kind::arcs:
      return say("Threads run from query to key; those of less than {:g} are left out.", request.threshold);
    case PictureRequest::Kind::bars:
    case PictureRequest::Kind::split:
      return "";
    case PictureRequest::Kind::patches:
      return request.smooth ? said("Between the middles of patches the weights are interpolated.") : "";
    default:
      break;
  }
  const MapKind kind = trace.maps.empty()          ? MapKind::probability
                       : trace.model.dims.hybrid() ? common_kind(trace.maps)
                                                   : trace.maps.front().place().kind;
  std::string out = say("Rows are queries, columns keys; colour: {}", describe_weights(kind, request.scaling.scale));
  if (request.scaling.low || request.scaling.high)
    out += say(", from {} to {}", request.scaling.low ? fmt::format("{:g}", *request.scaling.low) : said("the least"),
               request.scaling.high ? fmt::format("{:g}", *request.scaling.high) : said("the largest"));
  return out + ".";
}
}  // namespace

std::string caption_of(const Trace& trace, const PictureRequest& request,
                       const std::optional<std::vector<Intervention>>& edits, const std::string& model) {
  std::vector<std::string> sentences{what(trace, request) + said(" (LAYER.HEAD, counted from 0): ") +
                                     describe_run(trace) + "."};
  if (const std::string drawn = how_drawn(trace, request); !drawn.empty()) sentences.push_back(drawn);
  sentences.emplace_back(said("Nothing is averaged over heads or layers."));
  if (trace.merged_tokens > 0)
    sentences.emplace_back(
        said("Words instead of tokens: the sum over a word's tokens as keys, their mean as queries."));
  if (!leaves_out_first(request))
    sentences.emplace_back(said("The first token is shown as any other."));
  else if (request.renormalize)
    sentences.emplace_back(said("Weights on the first token are left out, and each row is divided by what remains."));
  else
    sentences.emplace_back(said("Weights on the first token are left out; rows sum to what remains."));
  if (edits) {
    std::vector<std::string> changes;
    for (const Intervention& edit : *edits)
      if (edit.enabled) changes.push_back(describe(edit));
    sentences.push_back(changes.empty() ? said("The model is as it was trained.")
                                        : say("The model was changed: {}.", fmt::join(changes, "; ")));
  }
  if (!model.empty()) sentences.push_back(fmt::format("M{}.", model.substr(1)));
  sentences.push_back(say("Drawn by Headscope {}.", program_version));
  return fmt::format("{}", fmt::join(sentences, " "));
}

}  // namespace headscope
