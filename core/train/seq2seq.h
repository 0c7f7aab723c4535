#pragma once
// A recurrent encoder-decoder that learns to translate: what there was before transformers. A gated recurrent unit
// reads the source one token after another; another writes the target, one token after another, and is told of the
// source a context c_i of `width` numbers at every step:
//   one vector  c_i = h_S, the encoder's last state, whatever the length (Cho et al. 2014; Sutskever, Vinyals & Le,
//               Sequence to Sequence Learning with Neural Networks, 2014)
//   attention   c_i = Σ_j α_ij h_j, α_i = softmax_j of w · tanh(W s_{i−1} + U h_j) over all of its states (Bahdanau,
//   Cho
//               & Bengio, 2015)
// All else is the same: s_0 = tanh(W h_S + b), s_i = GRU(y_{i−1} and c_i, s_{i−1}), and the logits are those of
// tanh(W s_i + C c_i + b). Bahdanau's encoder reads both ways; this one reads forwards, so that one thing differs.
// One thread at a time.

#include <cstdint>
#include <stop_token>
#include <vector>

#include "core/train/learner.h"

namespace headscope {

struct Seq2SeqSettings {
  Index vocabulary = 0;
  std::int32_t end = 0;    ///< the token before and behind every target, and behind every source
  Index width = 64;        ///< of embeddings, states and contexts
  bool attends = false;    ///< else one vector
  bool backwards = false;  ///< the source is read from its last word to its first (Sutskever et al. 2014)
};

class Seq2Seq final : public BatchLearner {
 public:
  /// Matrices of N(0, 1 / rows), the vector w of N(0, 1 / width), embeddings of N(0, 1), biases 0, but 1 at the
  /// encoder's and decoder's update gates: a state is kept to begin with, as an LSTM's whose forget gate has a bias
  /// (Jozefowicz et al. 2015). What both kinds have begins the same with the same seed. Throws Error on settings that
  /// make no sense. `backend`, which must outlive it, is a processor's.
  Seq2Seq(const Seq2SeqSettings& settings, const OptimizerSettings& optimizer, std::uint64_t seed, Backend& backend);

  /// Batches are those of TranslateTask: sources that end, targets behind the end token. The true target is read while
  /// it is learnt ("teacher forcing"). Throws Error on a batch without sources.
  StepReport learn(const Batch& batch, std::stop_token stop) override;
  double loss(const Batch& batch, std::stop_token stop) override;

  /// By text, `length` tokens, each the most probable behind those that it wrote itself.
  std::vector<std::vector<std::int32_t>> write(const Batch& sources, int length, std::stop_token stop);
  /// α of one text, (target token, source token), as its true target is read; of the token that each row writes.
  /// REQUIRES attends and one text in the batch. Columns are the source's tokens in its own order.
  Tensor alignment(const Batch& text, std::stop_token stop);

  const Seq2SeqSettings& settings() const { return settings_; }
  const Parameters& parameters() const { return parameters_; }  ///< names as in seq2seq.cpp's table
  Parameters& parameters() { return parameters_; }              ///< changed only between steps, in place

 private:
  /// What the decoder knows of a batch's sources.
  struct Source {
    Tensor summary;              ///< (B, width): the last states
    Tensor states, keys;         ///< (S · B, width), step by step; with attention
    std::vector<Index> lengths;  ///< by text
    Tensor context_gates;        ///< (B, 3 width): of one vector
  };
  Linear layer(const std::string& weight, const std::string& bias);
  const Tensor& at(const std::string& name) const;
  Source read(const Batch& batch, std::stop_token stop);
  /// One step of the decoder: from what it read, as gates (B, 3 width), and its state to its next state, which replaces
  /// `state`, with the context that it was told, and α (B, S) where that is asked for.
  Tensor step(const Source& source, const Tensor& word_gates, Tensor& state, Tensor* weights = nullptr);
  Tensor logits(const Tensor& states, const Tensor& contexts);
  Tensor first_state(const Source& source);
  /// Logits of every target, row t · B + b; α of every step where that is asked for.
  Tensor forced(const Batch& batch, std::stop_token stop, std::vector<Tensor>* weights = nullptr);
  Backend::Loss loss_of(const Batch& batch, std::stop_token stop);

  Seq2SeqSettings settings_;
  Backend& backend_;
  Parameters parameters_;
  std::unique_ptr<AdamW> optimizer_;
  Linear read_in_, read_on_, start_, write_in_, write_on_, write_context_, query_, key_, out_state_, out_context_,
      words_;
};

}  // namespace headscope
