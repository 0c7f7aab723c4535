#pragma once
// LoRA adapters (Hu et al., LoRA: Low-Rank Adaptation of Large Language Models, 2021) as the package peft writes them:
// a folder with adapter_config.json and adapter_model.safetensors (or .bin). A module's matrix W becomes W + s B A,
// with s = α ÷ r, or α ÷ √r (Kalajdzievski, A Rank Stabilization Scaling Factor for Fine-Tuning with LoRA, 2023).

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/io/tensor_file.h"
#include "core/model/family.h"

namespace headscope {

class LoraAdapter {
 public:
  struct Module {
    Tensor a, b;              ///< (r, in), (out, r)
    double scale = 1;         ///< s
    bool transposed = false;  ///< whether a square matrix is stored (in, out), as one that is not tells by its shape
    Index rank() const { return a.dim(0); }
  };

  /// Throws Error naming file and key or tensor on a method other than LoRA, settings that change numbers and are not
  /// understood, halves without the other, ranks that are not those of the configuration.
  static std::shared_ptr<const LoraAdapter> open(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  const std::string& base() const { return base_; }  ///< the model it was trained on, as its file calls it; or ""
  /// By the module's path in the base model: "model.layers.0.self_attn.q_proj".
  const std::map<std::string, Module>& modules() const { return modules_; }
  /// Tensors that stand in place of the base's, by their names there; and what they are called in the adapter's file.
  const std::map<std::string, std::string>& saved() const { return saved_; }
  const TensorFile& file() const { return *file_; }
  /// "rank 8, α 16, 24 matrices: q_proj, v_proj"
  std::string summary() const;

 private:
  std::filesystem::path folder_;
  std::string base_;
  std::shared_ptr<const TensorFile> file_;
  std::map<std::string, Module> modules_;
  std::map<std::string, std::string> saved_;
};

/// The weights of `base` with the adapter merged into them. What it added to the matrices of blocks stays apart too, in
/// RawLayer::adapted, so that a pass can do without.
class AdaptedWeights final : public WeightSource {
 public:
  /// Throws Error listing the adapter's modules that the base has no matrix for.
  AdaptedWeights(std::unique_ptr<WeightSource> base, std::shared_ptr<const LoraAdapter> adapter);
  std::string where() const override { return base_->where(); }
  std::vector<std::string> names() const override;
  bool contains(const std::string& name) const override;
  Tensor take(const std::string& name, const Shape& shape) const override;
  std::string dtype(const std::string& name) const override;
  void finish(const ModelConfig& config, RawWeights& weights) const override;

 private:
  std::unique_ptr<WeightSource> base_;
  std::shared_ptr<const LoraAdapter> adapter_;
  std::map<std::string, const LoraAdapter::Module*> modules_;  // by the tensor's name in the base
  std::map<std::string, std::string> saved_;                   // likewise
  mutable std::set<std::string> taken_;
};

}  // namespace headscope
