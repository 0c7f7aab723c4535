#pragma once
// Matrices of few bits as quantized Hugging Face folders hold them: beside X of X.weight lie whole numbers, scales and
// zeros, of which the float32 matrix that they stand for is made when it is taken. Which library packed them is said by
// config.json's "quantization_config"; how many bits a matrix has and how many of its numbers share a scale is told by
// shapes, since one folder may mix them. Rounded are weights alone, but for BitNet: where another library rounds
// activations as well, scales for those are left out. A layout is a file beside this and a line in few_bits.cpp.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/tensor_file.h"
#include "core/model/config_reader.h"
#include "core/model/family.h"

namespace headscope {

/// One layout. Modules are named as their matrix is without ".weight".
class FewBits {
 public:
  virtual ~FewBits() = default;
  /// What a module's tensors are called behind its name.
  virtual std::span<const std::string_view> parts() const = 0;
  virtual bool holds(const TensorFile& file, const std::string& module) const = 0;
  /// (out, in), maybe a view; float32. Throws Error naming file, tensor and shapes.
  virtual Tensor matrix(const TensorFile& file, const std::string& module, Index out, Index in) const = 0;
  /// "GPTQ 4 bits"
  virtual std::string dtype(const TensorFile& file, const std::string& module) const = 0;
};

// (Frantar et al., GPTQ, 2022; Lin et al., AWQ, 2023): w = scale · (q − zero)
std::unique_ptr<FewBits> gptq_layout(const ConfigReader& how);
std::unique_ptr<FewBits> awq_layout(const ConfigReader& how);
// Dettmers et al., LLM.int8(), 2022, and QLoRA, 2023: w = table[q] · absmax, or q · absmax ÷ 127 for each row
std::unique_ptr<FewBits> bitsandbytes_layout(const ConfigReader& how);
// vLLM's compressed-tensors, and NVIDIA's modelopt: w = scale · (q − zero), or numbers of E2M1 times scales
std::unique_ptr<FewBits> compressed_tensors_layout(const ConfigReader& how);
std::unique_ptr<FewBits> modelopt_layout(const ConfigReader& how);
// Apple's MLX: w = scale · q + bias
std::unique_ptr<FewBits> mlx_layout(const ConfigReader& how);

// Ma et al., The Era of 1-bit LLMs, 2024: w = s · (−1, 0 or 1)
std::unique_ptr<FewBits> bitnet_layout(const ConfigReader& how);
/// Bits to which what matrices of blocks read is rounded (ModelConfig::input_bits); 0 = it is not.
int bits_of_inputs(const ConfigReader& config);

/// Throws Error where config.json names a way of rounding that is not known.
void check_few_bits(const ConfigReader& config);
/// All weights of such a folder; those of any other as they are. `config`: null where there is none.
std::unique_ptr<WeightSource> folder_weights(std::shared_ptr<const TensorFile> file, const ConfigReader* config);

/// The tensor's numbers. Throws Error naming file, tensor and both shapes unless it is of this type and shape.
template <class T>
std::vector<T> whole_numbers(const TensorFile& file, const std::string& name, DType type,
                             const std::vector<std::int64_t>& shape);
/// (rows, columns) floats of a tensor with so many, whatever its shape.
Tensor floats_of(const TensorFile& file, const std::string& name, Index rows, Index columns);
/// The last extent. Throws Error where there is none.
Index last_extent(const TensorFile& file, const std::string& name);
/// The length of so many equal groups of `count` numbers, whose scales the tensor holds. Throws Error where there are
/// no such.
Index group_length(const TensorFile& file, const std::string& name, Index count, Index groups);
/// MXFP4 of that shape: `pairs` times the exponents that the tensor `scales` of that shape holds (few_bits_numbers.h).
/// Throws Error, also where one stands for NaN.
Tensor mxfp4(const TensorFile& file, const std::string& scales, const std::vector<std::int64_t>& scales_shape,
             std::span<const std::uint8_t> pairs, const Shape& shape);
/// {0, ½, 1, 1½, 2, 3, 4, 6} with a sign in the fourth bit (OCP Microscaling Formats v1.0, 2023: E2M1).
float e2m1(unsigned bits);

}  // namespace headscope
