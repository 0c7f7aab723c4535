#pragma once
// Everything one run left behind, immutable. Metrics, scenes, panels and exporters read only this: a GPT-2 on the CPU,
// an imported .npz and a trace opened from disk are the same thing to them.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/trace/attention_map.h"
#include "core/trace/capture.h"
#include "core/trace/model_info.h"
#include "core/trace/patch_picture.h"
#include "core/trace/sound_frames.h"

namespace headscope {

struct Token {
  std::int32_t id = 0;
  std::string bytes;           ///< what the token stands for; may be part of a UTF-8 character; "" for a special token
  std::string label;           ///< for people: spaces as ␣, newlines as ⏎, partial bytes as <E2>, specials by name
  int begin = -1, end = -1;    ///< byte span in the text, −1 when it has none (special tokens, ids given directly)
  bool masked = false;         ///< the model is asked what stands here …
  std::int32_t original = -1;  ///< … which is this, where it is known
  int segment = 0;             ///< of models that tell texts apart: which of them it is of
};

struct Trace {
  ModelInfo model;
  std::string text;                ///< "" when the run started from ids
  std::vector<Token> tokens;       ///< of the keys, and of the queries too unless they have their own
  std::vector<AttentionMap> maps;  ///< layer-major, of the recorded layers; may be empty
  std::map<Site, Tensor> sites;    ///< recorded tensors, shapes as in site_table()
  Tensor logits;  ///< (query, vocab), or (1, vocab) when only the last was kept, and of a picture; may be undefined
  std::string source;  ///< "headscope CPU f32, AVX-512", "imported from x.npz"
  CapturePlan plan;
  double milliseconds = 0;  ///< of the forward pass, metrics inside
  Index known_rows = 0;     ///< so many of the first rows the pass found as the one before left them (known_rows.h)
  double whole_milliseconds =
      0;  ///< what a pass over all of it takes: of the last one that was whole, by its tokens; 0 = unknown
  Index merged_tokens = 0;  ///< of how many tokens the positions are words (words.h); 0 = they are tokens
  /// Of the queries where they are of another text than the keys (cross-attention; all maps are then
  /// Place::between_texts). Empty = the keys'.
  std::vector<Token> query_tokens;
  std::shared_ptr<const PatchPicture> picture;  ///< what the keys are patches of; null where they are a text's tokens
  std::shared_ptr<const SoundFrames> sound;     ///< what the keys are frames of, likewise
  Tensor patches;  ///< (patch, numbers of it): what a model of pictures was given of it, or an encoder of its sound
                   ///< (sound->log_mel); undefined elsewhere

  /// Of an encoder-decoder's run, which is its decoder's: the source in the encoder, and how the target looked at it
  /// (`tokens` are the source's, `query_tokens` the target's, and there are no logits). Null elsewhere.
  std::shared_ptr<const Trace> encoder, cross;

  /// This itself for `only`, or for its own stack; null where there is no such part.
  const Trace* part(Stack of) const;
  /// Its parts in the order in which a pass reaches them: encoder, decoder, cross; `only` of a model of one stack.
  std::vector<Stack> stacks() const;

  /// Whether queries and keys are of two texts: then no distance, diagonal or repeat means anything.
  bool between_texts() const { return !query_tokens.empty(); }
  /// What stands along the queries.
  const std::vector<Token>& queries() const { return between_texts() ? query_tokens : tokens; }

  /// Whether some head may look at a key behind its query: encoders, pictures, edits of masks. A map whose mask is not
  /// known counts by its weights.
  bool sees_later_keys() const;

  /// Throws Error when that map was not recorded, or the model has no such head.
  const AttentionMap& map(HeadId head) const;
  std::vector<std::int32_t> ids() const;
  std::vector<std::int32_t> segments() const;
};

}  // namespace headscope
