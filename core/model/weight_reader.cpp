#include "core/model/weight_reader.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/nth.h"
#include "core/model/formats/packed_pairs.h"

namespace headscope {

namespace {

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t axis = 0; axis < shape.size(); ++axis) text += (axis ? ", " : "") + std::to_string(shape[axis]);
  return text + "]";
}

bool same(const std::vector<std::int64_t>& found, const Shape& expected) {
  if (static_cast<int>(found.size()) != expected.rank()) return false;
  for (int axis = 0; axis < expected.rank(); ++axis) {
    if (nth(found, axis) != expected[axis]) return false;
  }
  return true;
}

bool same_numbers(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) return false;
  if (a.kind() == b.kind() && a.contiguous() && b.contiguous() && a.first() == 0 && b.first() == 0)
    return a.stored() == b.stored() || std::memcmp(a.stored(), b.stored(), a.bytes()) == 0;
  for (Index row = 0; row < a.dim(0); ++row)
    if (!std::ranges::equal(a.select(0, row).packed().values(), b.select(0, row).packed().values())) return false;
  return true;
}

/// "a, b, c and 7 more": as many as an error's phrase has room for.
std::string list(const std::vector<std::string>& names) {
  constexpr std::size_t room = 120;
  std::string text;
  std::size_t i = 0;
  for (; i < names.size() && text.size() < room; ++i) text += (i ? ", " : "") + excerpt(names[i], 60);
  if (i < names.size()) text += " and " + std::to_string(names.size() - i) + " more";
  return text;
}

/// The scale of an F8 tensor: one number, one for each row, or one for each block of a matrix. DeepSeek's files call it
/// an inverse; all multiply by it.
const TensorEntry* scale_of(const TensorFile& file, const std::string& name) {
  for (const char* ending : {"_scale_inv", "_scale"})
    if (const auto found = file.tensors().find(name + ending); found != file.tensors().end()) return &found->second;
  return nullptr;
}

/// Rows (or columns) that share a scale when `extent` of them have `scales`: DeepSeek's 128, of which the last block
/// may be short, or as many as divide evenly.
Index block_of(Index extent, Index scales) {
  constexpr Index usual = 128;
  if (scales > 1 && (extent + usual - 1) / usual == scales) return usual;
  return scales > 0 && extent % scales == 0 ? extent / scales : 0;
}

Tensor scaled(const Tensor& tensor, const Tensor& given, const std::string& where) {
  const Index rows = tensor.rank() == 2 ? tensor.dim(0) : 1, columns = rows > 0 ? tensor.size() / rows : 0;
  const Tensor scale = given.size() == 1 ? given.reshape({1, 1}) : given;
  const bool flat = scale.rank() == 1;  // one for each row
  const Index down = scale.dim(0), across = flat ? 1 : scale.dim(1);
  const Index tall = block_of(rows, down), wide = block_of(columns, across);
  if (scale.rank() > 2 || tall == 0 || wide == 0)
    throw Error(where, "a scale for all, for each row, or for blocks of " + tensor.shape().str(),
                "scales of shape " + given.shape().str());
  Tensor out = Tensor::uninitialized(tensor.shape());
  const float* from = tensor.data();
  float* to = out.mutable_data();
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < columns; ++j) *to++ = *from++ * (flat ? scale.at(i / tall) : scale.at(i / tall, j / wide));
  return out;
}

}  // namespace

std::vector<std::string> FileWeights::names() const {
  std::vector<std::string> names;
  std::set<std::string> scales;
  for (const auto& [name, entry] : file_.tensors())
    if (const TensorEntry* const scale = needs_scale(entry.dtype) ? scale_of(file_, name) : nullptr)
      scales.insert(scale->name);
  for (const auto& [name, entry] : file_.tensors()) {
    if (scales.contains(name)) continue;
    const std::string packed = packed_pairs_of(file_, name);
    if (packed.empty())
      names.push_back(name);
    else if (names.empty() || names.back() != packed)  // its two tensors come one behind the other
      names.push_back(packed);
  }
  return names;
}

bool FileWeights::contains(const std::string& name) const {
  return file_.contains(name) || in_packed_pairs(file_, name);
}

std::string FileWeights::dtype(const std::string& name) const {
  return dtype_name(in_packed_pairs(file_, name) ? DType::mxfp4 : file_.entry(name).dtype);
}

Tensor FileWeights::take(const std::string& name, const Shape& shape) const {
  if (in_packed_pairs(file_, name)) return from_packed_pairs(file_, name, shape);
  const TensorEntry& entry = file_.entry(name);
  if (!same(entry.shape, shape)) {
    const std::string where = entry.file ? entry.file->path().string() : file_.path().string();
    throw Error(where + ": tensor " + name, "shape " + shape.str(), "shape " + shape_text(entry.shape),
                "config.json and the weights disagree: do they belong together?");
  }
  if (!needs_scale(entry.dtype)) return file_.weight(name);
  const std::string where = file_.path().string() + ": tensor " + name;
  const TensorEntry* const scale = scale_of(file_, name);
  if (!scale)
    throw Error(where, name + "_scale or " + name + "_scale_inv beside it",
                dtype_name(entry.dtype) + " without a scale", "numbers of 8 bits mean nothing without one");
  return scaled(file_.tensor(name), file_.tensor(scale->name).packed(), where);
}

Tensor scaled_by(const Tensor& x, double factor) {
  if (!x.defined() || factor == 1) return x;
  Tensor out = x.copy();
  for (float& v : out.mutable_values()) v = static_cast<float>(factor * static_cast<double>(v));
  return out;
}

WeightReader::WeightReader(const WeightSource& source, const std::vector<std::string>& prefixes, std::string_view probe,
                           std::string_view block)
    : source_(source), prefix_(prefixes.front()) {
  for (const std::string& prefix : prefixes) {
    if (source.contains(prefix + std::string(probe))) {
      prefix_ = prefix;
      break;
    }
  }
  block_ = prefix_ + std::string(block);
}

void WeightReader::take_full(const std::string& full, const Shape& shape,
                             const std::function<void(const Tensor&)>& use) {
  if (!source_.contains(full)) {
    missing_.push_back(full);
    return;
  }
  const Tensor tensor = source_.take(full, shape);
  taken_.insert(full);
  dtypes_.insert(source_.dtype(full));
  parameters_ += shape.size();
  use(tensor);
}

void WeightReader::take(const std::string& name, const Shape& shape, const std::function<void(const Tensor&)>& use) {
  take_full(prefix_ + name, shape, use);
}

void WeightReader::take(const std::string& name, const Shape& shape, Tensor& into) {
  take_full(prefix_ + name, shape, [&](const Tensor& tensor) { into = tensor; });
}

void WeightReader::take_transposed(const std::string& name, Index in, Index out, Tensor& into) {
  take_full(prefix_ + name, {out, in}, [&](const Tensor& tensor) { into = tensor.transpose(0, 1); });
}

void WeightReader::take_outside(const std::string& name, const Shape& shape,
                                const std::function<void(const Tensor&)>& use) {
  take_full(name, shape, use);
}

void WeightReader::take_unembedding(const std::string& name, const Shape& shape, bool tied, RawWeights& weights) {
  const Tensor& embedding = weights.token_embedding;
  if (!tied) {
    take_outside(name, shape, [&](const Tensor& head) { weights.unembedding = head.transpose(0, 1); });
    return;
  }
  if (!embedding.defined()) return;
  weights.unembedding = embedding.transpose(0, 1);
  // New weights have every name and no list: what they are to be is the configuration's to say.
  if (const auto names = source_.names(); std::ranges::find(names, name) == names.end()) return;
  const Tensor head = source_.take(name, shape);
  taken_.insert(name);
  if (same_numbers(head, embedding)) return;
  take_outside(name, shape, [&](const Tensor& own) { weights.unembedding = own.transpose(0, 1); });
  weights.untied = true;
}

void WeightReader::take_buffer(const std::string& name, const Shape& shape, Tensor& into) {
  take_buffer_outside(prefix_ + name, shape, into);
}

void WeightReader::take_buffer_outside(const std::string& full, const Shape& shape, Tensor& into) {
  if (!source_.contains(full)) return;
  into = source_.take(full, shape);
  taken_.insert(full);
}

void WeightReader::ignore(const std::string& name) {
  ignored_.insert(prefix_ + name);
}

void WeightReader::ignore_layers_from(int layer) {
  for (const std::string& name : source_.names()) {
    if (!name.starts_with(block_)) continue;
    int number = -1;
    const auto [end, failure] = std::from_chars(name.data() + block_.size(), name.data() + name.size(), number);
    if (failure == std::errc() && number >= layer) ignored_.insert(name);
  }
}

int WeightReader::layers_in_source() const {
  std::set<std::string> layers;
  for (const std::string& name : source_.names()) {
    if (name.rfind(block_, 0) != 0) continue;
    layers.insert(name.substr(block_.size(), name.find('.', block_.size()) - block_.size()));
  }
  return static_cast<int>(layers.size());
}

void WeightReader::finish(const ModelConfig& config, RawWeights& weights) const {
  const std::string layers = "config.json says " + std::to_string(config.dims.layers / (config.dims.paired ? 2 : 1)) +
                             " layers, the file holds " + std::to_string(layers_in_source());
  if (!missing_.empty()) {
    throw Error(source_.where(), std::to_string(taken_.size() + missing_.size()) + " tensors of a " + config.family,
                std::to_string(missing_.size()) + " missing: " + list(missing_),
                layers + "; the folder may be incomplete, or of another architecture");
  }
  std::vector<std::string> strangers;
  for (const std::string& name : source_.names()) {
    if (taken_.count(name) || ignored_.count(name)) continue;
    (name.rfind(block_, 0) == 0 ? strangers : weights.unused).push_back(name);
  }
  if (!strangers.empty()) {
    throw Error(source_.where(), "only tensors that a " + config.family + " block uses",
                std::to_string(strangers.size()) + " others: " + list(strangers),
                layers + "; leaving tensors out would compute something else than this model");
  }
  weights.parameters = parameters_;
  for (const std::string& type : dtypes_) weights.dtype += (weights.dtype.empty() ? "" : "+") + type;
}

}  // namespace headscope
