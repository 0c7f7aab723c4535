#include "core/model/formats/few_bits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/model/formats/few_bits_numbers.h"
#include "core/model/weight_reader.h"

namespace headscope {

namespace {

using Make = std::unique_ptr<FewBits> (*)(const ConfigReader& how);

/// Of one method. Without a layout FileWeights reads all there is.
struct Method {
  std::string_view name;
  Make layout;
};
constexpr std::array methods{Method{"gptq", gptq_layout},
                             Method{"awq", awq_layout},
                             Method{"bitsandbytes", bitsandbytes_layout},
                             Method{"compressed-tensors", compressed_tensors_layout},
                             Method{"modelopt", modelopt_layout},
                             Method{"bitnet", bitnet_layout},
                             Method{"fp8", nullptr},
                             Method{"fbgemm_fp8", nullptr},
                             Method{"mxfp4", nullptr}};

constexpr std::string_view matrix_ending = ".weight";
// Scales of activations, and of keys and values in a cache.
constexpr std::array<std::string_view, 7> spare{
    ".input_scale", ".input_scale_ub", ".input_global_scale", ".output_scale", ".q_scale", ".k_scale", ".v_scale"};

/// What config.json says of rounding, and the method; nothing where it says nothing.
struct Rounding {
  std::optional<ConfigReader> how;
  const Method* method = nullptr;  // null: MLX, which names none
};
Rounding rounding(const ConfigReader& config) {
  const std::optional<ConfigReader> how = config.object("quantization_config");
  if (how && how->has("quant_method")) {
    const std::string name = how->text("quant_method");
    if (const auto known = std::ranges::find(methods, name, &Method::name); known != methods.end())
      return {how, &*known};
  } else if (const std::optional<ConfigReader> mlx = config.object("quantization"); mlx && mlx->has("group_size")) {
    return {mlx};
  } else if (!how) {
    return {};
  }
  throw config.error("quantization_config",
                     "weights of F64 to F16, or rounded by gptq, awq, bitsandbytes, compressed-tensors, "
                     "modelopt, bitnet, fp8, mxfp4 or MLX",
                     "a quantized model: " + excerpt(how->text("quant_method", "of no told method"), 60),
                     "use the model's unquantized weights, or a GGUF file");
}

std::unique_ptr<FewBits> layout_of(const ConfigReader& config) {
  const Rounding told = rounding(config);
  if (!told.how) return nullptr;
  const Make make = told.method ? told.method->layout : mlx_layout;
  return make ? make(*told.how) : nullptr;
}

class FolderWeights final : public WeightSource {
 public:
  FolderWeights(std::shared_ptr<const TensorFile> file, std::unique_ptr<FewBits> layout)
      : file_(std::move(file)), plain_(*file_), layout_(std::move(layout)) {}

  std::string where() const override { return plain_.where(); }

  std::vector<std::string> names() const override {
    std::set<std::string> names;
    for (const std::string& name : plain_.names()) {
      if (std::ranges::any_of(spare, [&](std::string_view ending) { return name.ends_with(ending); })) continue;
      const std::string module = module_of_part(name);
      if (!module.empty())
        names.insert(module + std::string(matrix_ending));
      else if (!vain(name))
        names.insert(name);
    }
    return {names.begin(), names.end()};
  }
  bool contains(const std::string& name) const override { return plain_.contains(name) || !module_of(name).empty(); }
  Tensor take(const std::string& name, const Shape& shape) const override {
    const std::string module = module_of(name);
    if (module.empty()) return plain_.take(name, shape);
    if (shape.rank() != 2)
      throw Error(file_->path().string() + ": tensor " + name, "shape " + shape.str(), "a matrix of few bits");
    return layout_->matrix(*file_, module, shape[0], shape[1]);
  }
  std::string dtype(const std::string& name) const override {
    const std::string module = module_of(name);
    return module.empty() ? plain_.dtype(name) : layout_->dtype(*file_, module);
  }

 private:
  /// "" where it is as FileWeights reads it.
  std::string module_of(const std::string& name) const {
    if (!layout_ || !name.ends_with(matrix_ending)) return "";
    std::string module = name.substr(0, name.size() - matrix_ending.size());
    return layout_->holds(*file_, module) ? module : "";
  }
  std::string module_of_part(const std::string& stored) const {
    if (!layout_) return "";
    for (const std::string_view part : layout_->parts())
      if (stored.ends_with(part))
        if (std::string module = stored.substr(0, stored.size() - part.size()); layout_->holds(*file_, module))
          return module;
    return "";
  }
  /// Whether it is a bias of zeros, which older programs wrote beside every matrix that they packed.
  bool vain(const std::string& name) const {
    constexpr std::string_view ending = ".bias";
    if (!layout_ || !name.ends_with(ending)) return false;
    if (!layout_->holds(*file_, name.substr(0, name.size() - ending.size()))) return false;
    const Tensor bias = plain_.take(name, Shape(std::span<const Index>(file_->entry(name).shape))).packed();
    return std::ranges::all_of(bias.values(), [](float number) { return number == 0; });
  }

  std::shared_ptr<const TensorFile> file_;
  FileWeights plain_;
  std::unique_ptr<FewBits> layout_;
};

}  // namespace

void check_few_bits(const ConfigReader& config) {
  layout_of(config);
}

std::unique_ptr<WeightSource> folder_weights(std::shared_ptr<const TensorFile> file, const ConfigReader* config) {
  return std::make_unique<FolderWeights>(std::move(file), config ? layout_of(*config) : nullptr);
}

template <class T>
std::vector<T> whole_numbers(const TensorFile& file, const std::string& name, DType type,
                             const std::vector<std::int64_t>& shape) {
  const TensorEntry& entry = file.entry(name);
  if (entry.dtype != type || entry.shape != shape || !entry.strides.empty())
    throw Error(file.path().string() + ": tensor " + name,
                fmt::format("{} of shape [{}]", dtype_name(type), fmt::join(shape, ", ")),
                fmt::format("{} of shape [{}]", dtype_name(entry.dtype), fmt::join(entry.shape, ", ")),
                "config.json and the weights disagree: do they belong together?");
  file.reads(entry);
  return entry.items<T>();
}
template std::vector<std::uint8_t> whole_numbers(const TensorFile&, const std::string&, DType,
                                                 const std::vector<std::int64_t>&);
template std::vector<std::int8_t> whole_numbers(const TensorFile&, const std::string&, DType,
                                                const std::vector<std::int64_t>&);
template std::vector<std::int32_t> whole_numbers(const TensorFile&, const std::string&, DType,
                                                 const std::vector<std::int64_t>&);
template std::vector<std::uint32_t> whole_numbers(const TensorFile&, const std::string&, DType,
                                                  const std::vector<std::int64_t>&);

Tensor floats_of(const TensorFile& file, const std::string& name, Index rows, Index columns) {
  const TensorEntry& entry = file.entry(name);
  if (entry.elements() != rows * columns)
    throw Error(file.path().string() + ": tensor " + name, fmt::format("{} × {} numbers", rows, columns),
                fmt::format("shape [{}]", fmt::join(entry.shape, ", ")),
                "config.json and the weights disagree: do they belong together?");
  return file.tensor(name).reshape({rows, columns});
}

Index last_extent(const TensorFile& file, const std::string& name) {
  const TensorEntry& entry = file.entry(name);
  if (entry.shape.empty()) throw Error(file.path().string() + ": tensor " + name, "a matrix", "one number");
  return entry.shape.back();
}

Index group_length(const TensorFile& file, const std::string& name, Index count, Index groups) {
  if (groups < 1 || count % groups != 0)
    throw Error(file.path().string() + ": tensor " + name, fmt::format("scales for equal parts of {} numbers", count),
                fmt::format("{} of them", groups));
  return count / groups;
}

Tensor mxfp4(const TensorFile& file, const std::string& scales, const std::vector<std::int64_t>& scales_shape,
             std::span<const std::uint8_t> pairs, const Shape& shape) {
  const std::vector<std::uint8_t> exponents = whole_numbers<std::uint8_t>(file, scales, DType::u8, scales_shape);
  if (std::ranges::find(exponents, 255) != exponents.end())
    throw Error(file.path().string() + ": tensor " + scales, "exponents 0 to 254", "255, which stands for NaN");
  return mxfp4_of(shape, pairs.data(), exponents.data());
}

float e2m1(unsigned bits) {
  constexpr std::array<float, 16> values{0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};
  return values[bits & 0xf];
}

}  // namespace headscope
