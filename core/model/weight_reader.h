#pragma once
// Takes a family's tensors out of a source by name and exact shape, and reports at the end all that is missing and all
// that nobody asked for.

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/family.h"

namespace headscope {

/// The tensors of a file by the names they have in it. F8 tensors are multiplied by the scale stored beside them
/// (NAME_scale or NAME_scale_inv), which is no tensor of its own here; NAME_blocks with NAME_scales are NAME
/// (core/model/formats/packed_pairs.h).
class FileWeights final : public WeightSource {
 public:
  /// `file` must outlive this.
  explicit FileWeights(const TensorFile& file) : file_(file) {}
  std::string where() const override { return file_.path().string(); }
  std::vector<std::string> names() const override;
  bool contains(const std::string& name) const override;
  Tensor take(const std::string& name, const Shape& shape) const override;
  std::string dtype(const std::string& name) const override;

 private:
  const TensorFile& file_;
};

/// A copy times `factor`, or `x` itself where that changes nothing.
Tensor scaled_by(const Tensor& x, double factor);

class WeightReader {
 public:
  /// `prefixes`: where the tensors may live ("transformer.", ""), the first that holds `probe` is used.
  /// `block`: what a layer's names start with after the prefix ("h.").
  WeightReader(const WeightSource& source, const std::vector<std::string>& prefixes, std::string_view probe,
               std::string_view block);

  /// Gives PREFIX + name to `use` when it is there. Throws Error naming file, tensor and both shapes when its shape is
  /// not `shape`; a missing tensor is noted for finish() and `use` is not called.
  void take(const std::string& name, const Shape& shape, const std::function<void(const Tensor&)>& use);
  void take(const std::string& name, const Shape& shape, Tensor& into);
  /// A matrix stored (out, in), as torch.nn.Linear does: `into` is its (in, out) view.
  void take_transposed(const std::string& name, Index in, Index out, Tensor& into);
  /// The same for names that never carry the prefix (lm_head).
  void take_outside(const std::string& name, const Shape& shape, const std::function<void(const Tensor&)>& use);
  /// The matrix to logits (out, in), or the embedding again where the configuration ties them. A file that has one of
  /// other numbers all the same is followed, as transformers does from version 5 on (RawWeights::untied).
  void take_unembedding(const std::string& name, const Shape& shape, bool tied, RawWeights& weights);
  /// Numbers beside the parameters that some files hold: not counted, and `into` stays as it is where they are not
  /// there.
  void take_buffer(const std::string& name, const Shape& shape, Tensor& into);
  void take_buffer_outside(const std::string& name, const Shape& shape, Tensor& into);
  bool contains(const std::string& name) const { return source_.contains(prefix_ + name); }
  bool contains_outside(const std::string& name) const { return source_.contains(name); }
  /// A buffer that some files hold and no pass needs.
  void ignore(const std::string& name);
  /// All tensors of blocks from this number on: what a file holds behind the decoder.
  void ignore_layers_from(int layer);

  /// Throws Error when a tensor was missing, or when a block holds one that nobody took: ignoring it would compute
  /// something else than the model. Otherwise writes parameters, dtype and unused.
  void finish(const ModelConfig& config, RawWeights& weights) const;

 private:
  void take_full(const std::string& full, const Shape& shape, const std::function<void(const Tensor&)>& use);
  int layers_in_source() const;

  const WeightSource& source_;
  std::string prefix_, block_;
  std::set<std::string> taken_, ignored_, dtypes_;
  std::vector<std::string> missing_;
  std::int64_t parameters_ = 0;
};

}  // namespace headscope
