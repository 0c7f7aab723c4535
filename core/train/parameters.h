#pragma once
// The trainable weights of a model: named tensors in the Hugging Face layout of its family (GPT-2 keeps matrices
// (in, out), Llama (out, in); tied embeddings are one tensor). Which tensors there are, and their shapes, is read off
// the family's own reader (core/model/family.h), so that a model trained here is one that Model::load opens.
// Copying Parameters shares the tensors; clone() does not. Not thread-safe while training.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/io/safetensors.h"
#include "core/model/model.h"

namespace headscope {

struct Parameter {
  std::string name;   ///< as in the file: "transformer.h.0.attn.c_attn.weight"
  Tensor value;       ///< contiguous
  bool pace = false;  ///< logarithms of how fast states decay: no weights that could shrink, also where a matrix
  bool matrix() const { return value.rank() >= 2; }
  /// Whether weight decay pulls it towards 0.
  bool decays() const { return matrix() && !pace; }
};

class Parameters {
 public:
  /// Random weights as GPT-2's (Radford et al., 2019): N(0, deviation²), the two projections that write to the residual
  /// stream ÷ √(2 · layers), gains 1, biases 0; state spaces as theirs (draw_state_space). The same seed gives the same
  /// bits. Learned positions may start as sinusoids of the same size instead, which know from the first step on what
  /// lies k tokens back.
  enum class FirstPositions { random, sinusoids };
  struct Initial {
    std::uint64_t seed = 1;
    double deviation = 0.02;
    FirstPositions positions = FirstPositions::random;
    bool by_depth = true;  ///< false: the projections that write to the residual stream have that deviation too
  };
  static Parameters initial(const ModelConfig& config, const Initial& how);
  static Parameters initial(const ModelConfig& config, std::uint64_t seed) { return initial(config, Initial{seed}); }
  /// Copies of a model folder's weights as float32. Throws as Model::load.
  static Parameters load(const std::filesystem::path& folder);

  const ModelConfig& config() const { return config_; }
  const std::vector<Parameter>& all() const { return all_; }
  std::vector<Parameter>& all() { return all_; }
  std::int64_t count() const;  ///< numbers in all tensors
  Parameters clone() const;

  /// A model whose weights are views of these tensors and follow them (Model::Weights::changing).
  std::shared_ptr<const Model> trainable_model(Backend& backend) const;
  /// An ordinary model over a copy of these tensors.
  std::shared_ptr<const Model> snapshot(Backend& backend) const;

  /// Writes folder/config.json and folder/model.safetensors (F32 or F16), which Model::load opens.
  /// Throws Error when a value does not fit F16, or on a file that cannot be written.
  void save(const std::filesystem::path& folder, DType type,
            const std::map<std::string, std::string>& metadata = {}) const;
  /// Named copies, and the inverse. restore() throws Error naming the tensor that is missing or has another shape; then
  /// nothing has changed.
  std::map<std::string, Tensor> state() const;
  void restore(const std::map<std::string, Tensor>& state);

 private:
  ModelConfig config_;
  std::vector<Parameter> all_;
};

}  // namespace headscope
