#include "core/io/capture_arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/json.h"
#include "core/base/memory.h"
#include "core/io/json_view.h"
#include "core/io/npz.h"
#include "core/io/strict_json.h"

namespace headscope {

namespace {

class NumpyArrays final : public CaptureArrays {
 public:
  explicit NumpyArrays(NpzFile file) : file_(std::move(file)) {}
  const std::filesystem::path& path() const override { return file_.path(); }
  std::vector<std::string> names() const override { return file_.names(); }
  bool contains(const std::string& name) const override { return file_.contains(name); }
  NpyArray array(const std::string& name) const override { return file_.array(name); }
  bool is_text(const std::string& name) const override {
    if (!contains(name)) return false;
    const NpyArray::Kind kind = array(name).kind;
    return kind == NpyArray::Kind::text || kind == NpyArray::Kind::bytes;
  }
  std::vector<std::string> strings(const std::string& name) const override { return file_.strings(name); }

 private:
  NpzFile file_;
};

class SafetensorsArrays final : public CaptureArrays {
 public:
  explicit SafetensorsArrays(TensorFile file) : file_(std::move(file)) {}
  const std::filesystem::path& path() const override { return file_.path(); }
  std::vector<std::string> names() const override {
    std::vector<std::string> out;
    for (const auto& [name, entry] : file_.tensors()) out.push_back(name);
    return out;
  }
  bool contains(const std::string& name) const override {
    return file_.contains(name) || file_.metadata().count(name) > 0;
  }

  NpyArray array(const std::string& name) const override {
    const TensorEntry& entry = file_.entry(name);
    NpyArray out;
    out.where = path().string() + ": tensor " + excerpt(name);
    out.descr = dtype_name(entry.dtype);
    out.item = dtype_size(entry.dtype);
    out.shape = entry.shape;
    out.kind = kind_of(entry.dtype, out.where);
    if (entry.size > available_memory())
      throw Error(
          out.where,
          fmt::format("a size below the free memory of {}", memory_text(static_cast<double>(available_memory()))),
          memory_text(static_cast<double>(entry.size)));
    out.data = entry.items<std::byte>();
    return out;
  }

  bool is_text(const std::string& name) const override { return file_.metadata().count(name) > 0; }

  std::vector<std::string> strings(const std::string& name) const override {
    const std::string where = path().string() + ": " + excerpt(name);
    const auto written = file_.metadata().find(name);
    if (written == file_.metadata().end()) throw Error(where, "text: a JSON list in __metadata__", "a tensor");
    if (written->second.empty() || written->second.front() != '[') return {written->second};
    const nlohmann::json parsed = parse_strict_json(written->second, where, 2);
    std::vector<std::string> out;
    for (const JsonView& item : JsonView(parsed, where).elements("texts")) out.push_back(item.text());
    return out;
  }

 private:
  static NpyArray::Kind kind_of(DType type, const std::string& where) {
    using Kind = NpyArray::Kind;
    switch (type) {
      case DType::f16:
      case DType::f32:
      case DType::f64:
        return Kind::floating;
      case DType::bf16:
        return Kind::bfloat16;
      case DType::i8:
      case DType::i16:
      case DType::i32:
      case DType::i64:
        return Kind::signed_integer;
      case DType::u8:
        return Kind::unsigned_integer;
      case DType::boolean:
        return Kind::boolean;
      default:
        throw Error(where, "F16, BF16, F32, F64 or whole numbers", dtype_name(type));
    }
  }

  TensorFile file_;
};

}  // namespace

std::unique_ptr<CaptureArrays> numpy_arrays(const std::filesystem::path& path) {
  return std::make_unique<NumpyArrays>(NpzFile::open(path));
}

std::unique_ptr<CaptureArrays> safetensors_arrays(TensorFile file) {
  return std::make_unique<SafetensorsArrays>(std::move(file));
}

}  // namespace headscope
