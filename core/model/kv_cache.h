#pragma once
// Keys (rotated) and values of the tokens already read, per layer, so that the next token costs one row instead of a
// whole pass (Pope et al., Efficiently Scaling Transformer Inference, 2022). One per running text; not thread-safe.
// Memory: layers · capacity · kv_heads · (d_head + d_value) · 4 bytes, allocated at once. Of a model with latents too,
// whose own cache could be smaller: what an edit made of a key or a value has to stay. Where this machine computes
// attention, keys stand here once more as its products read them (growing_panels.h): d_head numbers a key more.
//
// A layer of a state space keeps the state behind the last token, (lanes, d_state, width of a lane), however long the
// text is, and one further back. Besides, for going back and for maps of earlier keys, what each token gave it: rows
// before and behind the convolution, step and B; with queries C too, so that rows of earlier tokens can be computed.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/model/config.h"
#include "core/tensor/backend.h"
#include "core/tensor/growing_panels.h"
#include "core/tensor/growing_rows.h"
#include "core/tensor/tensor.h"
#include "core/trace/capture.h"

namespace headscope {

/// What one token's keys and values take in a layer, and how that comes about; of a state space what is kept of one
/// for going back.
struct CachedNumbers {
  std::uint64_t numbers = 0;
  std::string words;  ///< "2 · key heads · d_head", "latent + turning dimensions"
  std::string sum;    ///< "2 · 4 · 64"
};
/// Of this program's cache; of layers of several kinds, those that attend (layer_kinds() has the others).
CachedNumbers kept_numbers(const ModelDims& dims);
/// Of a cache that keeps no more than it must: the latent where there is one, and the part of a key beside it; nothing
/// where there is a state.
CachedNumbers needed_numbers(const ModelConfig& config);
/// Numbers of one token in all layers that attend: that this program keeps, and that a cache needs, which keeps keys
/// and values once where layers share them.
std::uint64_t kept_in_all(const ModelDims& dims);
std::uint64_t needed_in_all(const ModelConfig& config);
/// "20 · (2 · 1 · 256) + 4 · (2 · 1 · 512)": kept_in_all(), kind by kind of layer.
std::string kept_in_all_sum(const ModelDims& dims);
/// What a layer with a state keeps of a text of any length: its state, and what its convolution reads of earlier
/// tokens. 0 of attention.
CachedNumbers state_numbers(const ModelConfig& config);

class KvCache {
 public:
  /// `queries`: those are kept beside keys and values, so that a pass over the next tokens can draw the maps of all
  /// rows. Of layers with a state maps go on from those of the last pass.
  KvCache(const ModelDims& dims, int capacity, bool queries = false);
  int length() const { return length_; }
  int capacity() const { return capacity_; }
  int text() const { return text_; }  ///< how long the text was whose pass last put something here
  std::size_t bytes() const;
  /// Of panels of the keys of tokens that are here: 0 where no product asked for them (a card has kernels of its own).
  std::size_t panel_bytes() const;
  /// Of keys and values of a source, its keys in panels among them; 0 without one.
  std::size_t source_bytes() const;
  /// Forgets everything after the first `length` tokens. REQUIRES 0 ≤ length ≤ length().
  void truncate(int length);
  /// Makes room for longer texts.
  void reserve(int capacity);

  /// Another of the same tokens, which grows by itself; what stays the same, of a source, is shared.
  KvCache copy() const;

  /// Puts k and v (token, kv_head, width) of one layer behind the tokens that are there, and returns all keys and
  /// values, (length() + tokens, kv_head, width), which stay as they are whatever is put here later. REQUIRES length()
  /// + tokens ≤ capacity(). Length grows only by advance().
  struct Both {
    Tensor k, v;
  };
  Both append(int layer, const Tensor& k, const Tensor& v, Backend& backend);
  /// Of a layer's keys, for softmax_attention(), which packs what is new: of those that append() returns, or of a
  /// source's. What changes here is forgotten there.
  GrowingPanels& panels(int layer, bool of_source = false) {
    return (of_source ? source_panels_ : panels_)[static_cast<std::size_t>(layer)];
  }
  bool keeps_queries() const { return !q_.empty(); }
  /// Likewise, of queries (token, head, d_head). REQUIRES keeps_queries().
  Tensor append_queries(int layer, const Tensor& q, Backend& backend);
  /// Keys and values of a source, (source, kv_head, width), which stay the same for every token of the target.
  const Both* source(int layer) const {
    return source_[static_cast<std::size_t>(layer)].k.defined() ? &source_[static_cast<std::size_t>(layer)] : nullptr;
  }
  void keep_source(int layer, Both keys_and_values) {
    source_[static_cast<std::size_t>(layer)] = std::move(keys_and_values);
    source_panels_[static_cast<std::size_t>(layer)].forget(0);
  }
  void advance(int tokens);

  /// What tokens gave the state of a layer, (tokens, …) each.
  struct Taken {
    Tensor read, x, delta, b;  ///< read: by the convolution
    Tensor beta = {};          ///< of the delta rule
    Tensor c = {};             ///< what maps of all rows are made of beside these; of a cache that keeps queries
  };
  /// As for keys and values, always on this machine: it alone reads them.
  Taken append(int layer, const Taken& fresh);
  /// The last `rows` rows that the convolution read, 0 where there are none; undefined of no token, or no row.
  Tensor read_before(int layer, Index rows) const;
  struct State {
    int tokens = 0;
    Tensor value;  ///< undefined of none: zeros
  };
  /// The state behind length() tokens or, where it is not known any more, since the text was cut back, behind fewer.
  State state(int layer) const;
  /// `state`, that nobody writes to, is the one behind so many tokens. Beside it one further back stays.
  void keep_state(int layer, Tensor state, int tokens);
  /// Behind how many of so many tokens that one is best: a word or two may be taken back, and no more than sixteen
  /// tokens are mixed again.
  static int further_back(int tokens) { return tokens > 0 ? (tokens - 1) / 16 * 16 : 0; }

 private:
  /// `fresh` behind the tokens that are there in `all`; all of them. On this machine, whatever the device.
  Tensor put_here(Tensor& all, const Tensor& fresh) const;
  struct Held {
    Taken taken;
    std::vector<State> states;  // at most two, by tokens
  };
  std::vector<GrowingRows> k_, v_, q_;  // per layer
  std::vector<GrowingPanels> panels_, source_panels_;
  std::vector<Both> source_;
  std::vector<Held> held_;  // per layer of a state space
  int length_ = 0, capacity_ = 0, text_ = 0;
};

}  // namespace headscope
