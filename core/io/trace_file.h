#pragma once
// Traces on disk.
// A trace file is safetensors with TransformerLens names, so a notebook opens it without this program: `tokens` (I32),
// `blocks.{i}.attn.hook_pattern` (head, query, key) and whichever recorded sites were asked for (site_table() has names
// and shapes), `logits`, all F32; __metadata__ holds "format", "version" and, under "headscope", a JSON description:
// model, text, tokens (bytes, label, span; bytes that are not UTF-8 as {"hex": …}), source, queries, keys,
// query_offset, map_kind and rule of the first map, head_kinds and head_rules of the heads that have another one, plan,
// milliseconds; "query_tokens" (and their ids as the tensor `query_tokens`) where queries are of another text; "grid"
// (rows, columns, leading) and the tensor `image` (U8) where keys are patches of a picture; "sound" (frame_seconds,
// keys, seconds, from where it is not the beginning) and the tensor `log_mel` (frame, mel) where they are stretches of
// a sound; "names" where tensors have those of TransformerLens' bridges (hook_names.h). A file holds one part of an
// encoder-decoder's run: its model has "stack" ("enc", "dec", "cross"), and tensors are named after it
// (encoder.blocks.0…, decoder.blocks.0.cross_attn…). Under "recipe" __metadata__ says how the file was made
// (TraceFileOptions). Older files call the output of a norm hook_normalized.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "core/trace/hook_names.h"
#include "core/trace/trace.h"

namespace headscope {

struct TraceFileOptions {
  std::set<SiteKind> sites{SiteKind::pattern};                  ///< what is written besides tokens and description
  std::function<void(std::size_t, std::size_t)> progress = {};  ///< (done, total) in bytes; may throw to give up
  HookNames names = HookNames::transformer_lens;                ///< of the tensors
  std::string recipe =
      {};  ///< how the file was made, one line of JSON (app/state/picture_recipe.h); "" = it does not say
};

/// What write_trace() was given as the recipe; "" = none. Throws Error on a file that is no safetensors.
std::string recipe_of_trace(const std::filesystem::path& path);

/// Atomic. Maps are written a band of rows at a time: a factored map never stands whole in memory.
/// Throws Error when a site was not recorded, or the disk refuses.
void write_trace(const Trace& trace, const std::filesystem::path& path, const TraceFileOptions& options = {});

/// From AttentionRule::describe() back to the rule: parse_described_rule, which this layer does not know. May throw
/// Error.
using RuleParser = std::function<std::shared_ptr<const AttentionRule>(const std::string&)>;

/// A trace file, or attention of another program: .npz, .npy, or .safetensors without a description, see
/// open_attention().
std::shared_ptr<const Trace> open_trace(const std::filesystem::path& path, const RuleParser& parse = {});

/// Whether a path ends as files do that open_trace() opens. What is in them is for it to say.
bool may_be_trace(const std::filesystem::path& path);
/// The same with a look at the head of a .safetensors file, which may be a model. Never throws.
bool holds_trace(const std::filesystem::path& path);

/// Maps are dense, with statistics of stats_of_weights(). Each head's rule is what the file
/// says; where that is nothing, or nothing that `parse` knows, it is causal when every weight above the diagonal is
/// exactly 0, else not known. Throws Error on weights where a rule masks, on files that are not traces, shapes that
/// disagree with the description, weights that are not finite, and counts that disagree.
std::shared_ptr<const Trace> open_trace_file(const std::filesystem::path& path, const RuleParser& parse = {});

class CaptureArrays;
/// Attention captured elsewhere: an array `attn` (or the file's only array) of [layer, head, query, key] or [head,
/// query, key] in f16, bf16, f32 or f64, or an array for each layer under TransformerLens' names. A batch axis of 1
/// ([layer, 1, head, query, key]) goes; a larger one is refused.
///   tokens (text), ids (integers)    of the keys (`tokens` of integers are ids); where there are fewer queries these
///   are the last of the text. Keys
///                                    past the tokens on which no query has weight are padding, and left out
///   query_tokens, query_ids,         where queries are of another text (cross-attention): tokens and ids are then
///   key_tokens, key_ids              those of the side that has none of its own. A rectangle without any of these is
///                                    taken so, too
///   grid [rows, columns, leading]    the keys are patches of a picture, row by row after `leading` others (CLS)
///   image [height, width, 3] uint8   that picture
///   model, source (text)             what it was captured from, and how
/// Tokens without ids are numbered by their text, so that equal texts are equal tokens; without either they are
/// numbered by position. The maps are probabilities when every row sums to 1 within 0.001 (captures are often
/// rounded), else effective; causal when nothing stands above the diagonal of a map within one text.
std::shared_ptr<const Trace> open_attention(const CaptureArrays& file);

}  // namespace headscope
