#pragma once
// The run that edits change, and what they need of others.

#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "core/edits/intervention.h"
#include "core/model/model.h"
#include "core/trace/trace.h"

namespace headscope {

/// What an edit needs of another run: of the text it takes activations from, or (text "") of this text before any edit.
struct SourceNeed {
  std::string text;
  CaptureSpec capture;  ///< sites, and maps where a pattern is frozen
};
/// What the enabled edits need, each text once.
std::vector<SourceNeed> sources_of(const std::vector<Intervention>& edits);

/// Whether some enabled edit, at all heads and positions, lets texts be longer than the model was trained on: of any
/// model without a table of positions, which ends there.
bool reads_past_context(const std::vector<Intervention>& edits, const ModelConfig& model);

/// The runs themselves, by text.
using EditSources = std::map<std::string, std::shared_ptr<const Trace>>;

struct EditScene {
  ModelDims dims;
  std::vector<std::int32_t> ids;  ///< of the text
  EditSources sources;            ///< what sources_of() asks for
  const Model* model = nullptr;   ///< whose pass it is: edits of positions and of keys look at its weights
  int first_row = 0;              ///< position of the pass's first row: the tokens before it lie in a cache
  Backend* backend = nullptr;     ///< of the pass: computes the norms that an edit moves, so that a tape sees them
  bool heads_apart = false;       ///< somebody wants what each head adds (the site `result`)
  Stack stack = Stack::only;
  /// Of cross-attention: the ids of the source, whose tokens are its keys; empty elsewhere.
  std::vector<std::int32_t> source_ids = {};
  std::stop_token stop = {};  ///< of the pass: mechanisms that take long look at it and throw Cancelled

  int rows() const { return static_cast<int>(ids.size()); }  ///< of the whole text
  const std::vector<std::int32_t>& key_ids() const { return source_ids.empty() ? ids : source_ids; }
  int keys() const { return static_cast<int>(key_ids().size()); }
  /// REQUIRES that sources_of() was followed.
  const Trace& source(const std::string& text) const;
};

}  // namespace headscope
