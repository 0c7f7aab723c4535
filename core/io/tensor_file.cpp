#include "core/io/tensor_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/json.h"
#include "core/base/nearest_names.h"
#include "core/io/strict_json.h"

namespace headscope {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr std::size_t index_limit = 100'000'000;

/// `count` blocks from byte `begin` of the file on as float32, a stretch at a time.
void decode(const TensorEntry& entry, std::size_t count, float* to) {
  const DTypeInfo& type = dtype_info(entry.dtype);
  if (entry.dtype == DType::f32) {  // as it lies
    entry.file->read(entry.offset, std::as_writable_bytes(std::span(to, count)));
    return;
  }
  const std::size_t most = std::max<std::size_t>(1, (std::size_t{1} << 19) / type.bytes);
  std::vector<std::byte> stretch(std::min(count, most) * type.bytes);
  for (std::size_t done = 0; done < count;) {
    const std::size_t blocks = std::min(most, count - done);
    const std::span<std::byte> bytes(stretch.data(), blocks * type.bytes);
    entry.file->read(entry.offset + done * type.bytes, bytes);
    type.decode(bytes.data(), blocks, to + done * type.items);
    done += blocks;
  }
}

/// The rows of a view whose items lie `strides` apart in `items`.
void gather(const TensorEntry& entry, const float* items, float* to) {
  std::array<std::int64_t, Shape::max_rank> at{};
  const std::size_t rank = entry.shape.size();
  for (std::int64_t left = entry.elements(); left > 0; --left) {
    std::int64_t from = 0;
    for (std::size_t axis = 0; axis < rank; ++axis) from += at[axis] * entry.strides[axis];
    *to++ = items[from];
    for (std::size_t axis = rank; axis-- > 0;) {
      if (++at[axis] < entry.shape[axis]) break;
      at[axis] = 0;
    }
  }
}

}  // namespace

std::int64_t TensorEntry::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) product *= extent;
  return product;
}

void TensorEntry::read(std::span<std::byte> out) const {
  file->read(offset, out);
}

Tensor to_float(const TensorEntry& entry) {
  const std::string where = (entry.file ? entry.file->path().string() + ": " : "") + "tensor " + excerpt(entry.name);
  if (entry.shape.size() > Shape::max_rank)
    throw Error(where, fmt::format("at most {} axes", Shape::max_rank), fmt::format("shape {}", entry.shape));
  const DTypeInfo& type = dtype_info(entry.dtype);
  if (!type.decode)
    throw Error(where, "a floating-point dtype (F64, F32, F16, BF16, F8, or blocks of GGUF)", dtype_name(entry.dtype));
  Tensor out = Tensor::uninitialized(Shape(std::span<const Index>(entry.shape)));
  const std::size_t stored = entry.size / type.bytes;
  if (entry.strides.empty()) {
    decode(entry, stored, out.mutable_data());
  } else {
    std::vector<float> items(stored);
    decode(entry, stored, items.data());
    gather(entry, items.data(), out.mutable_data());
  }
  return out;
}

TensorFile::TensorFile(fs::path path, std::string format, Tensors tensors, Metadata metadata)
    : path_(std::move(path)),
      format_(std::move(format)),
      tensors_(std::move(tensors)),
      metadata_(std::move(metadata)) {}

const TensorEntry& TensorFile::entry(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found != tensors_.end()) return found->second;
  std::vector<std::string> names;
  names.reserve(tensors_.size());
  for (const auto& [known, unused] : tensors_) names.push_back(known);
  throw Error(path_.string(), "tensor " + excerpt(name), fmt::format("{} tensors, none of that name", names.size()),
              nearest_names_hint(name, names));
}

Tensor TensorFile::tensor(const std::string& name) const {
  const TensorEntry& found = entry(name);
  reads(found);
  return to_float(found);
}

Tensor TensorFile::weight(const std::string& name) const {
  const TensorEntry& found = entry(name);
  const std::optional<Stored> kind = stored_type(found.dtype);
  const std::size_t rank = found.shape.size();
  // Vectors are biases and gains, which other ops than products read.
  if (!kind || kind == Stored::f32 || rank < 2 || rank > Shape::max_rank || !found.strides.empty()) return tensor(name);
  reads(found);
  Tensor out = Tensor::uninitialized(*kind, Shape(std::span<const Index>(found.shape)));
  found.read({out.mutable_stored(), found.size});
  return out;
}

TensorFile open_index(const fs::path& path, const std::function<TensorFile(const fs::path&)>& open) {
  const std::string where = path.string();
  const json root = parse_strict_json(read_file(path, index_limit), where);
  const json* map = root.is_object() && root.contains("weight_map") ? &root["weight_map"] : nullptr;
  if (!map || !map->is_object() || map->empty())
    throw Error(where, "an object \"weight_map\" from tensor names to files", map ? json_excerpt(*map) : "none");

  TensorFile::Tensors tensors;
  TensorFile::Metadata metadata;
  std::string format;
  if (const auto meta = root.find("metadata"); meta != root.end() && meta->is_object())
    for (const auto& [key, value] : meta->items())
      metadata[key] = value.is_string() ? value.get<std::string>() : value.dump();
  std::map<std::string, TensorFile> shards;
  for (const auto& [name, value] : map->items()) {
    const std::string shard = value.is_string() ? value.get<std::string>() : "";
    // A name with a folder in it could reach any file of the machine; an index in an index, itself.
    if (shard.empty() || shard == "." || shard == ".." || shard.ends_with(".json") ||
        shard.find_first_of(std::string("/\\\0", 3)) != std::string::npos)
      throw Error(where + ": weight_map: " + excerpt(name), "the name of a file beside the index", json_excerpt(value));
    auto opened = shards.find(shard);
    if (opened == shards.end()) {
      opened = shards.emplace(shard, open(path.parent_path() / shard)).first;
      metadata.insert(opened->second.metadata().begin(), opened->second.metadata().end());
      format = opened->second.format();
    }
    const auto entry = opened->second.tensors().find(name);
    if (entry == opened->second.tensors().end())
      throw Error(where, fmt::format("tensor {} in {}", excerpt(name), excerpt(shard)), "no such tensor there",
                  "the index and its files do not belong together");
    tensors.emplace(name, entry->second);
  }
  return {path, format + fmt::format(", {} file{}", shards.size(), shards.size() == 1 ? "" : "s"), std::move(tensors),
          std::move(metadata)};
}

}  // namespace headscope
