#include "core/io/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/json.h"
#include "core/io/data_spans.h"
#include "core/io/strict_json.h"

namespace headscope {

namespace fs = std::filesystem;
using nlohmann::json;

static_assert(std::endian::native == std::endian::little,
              "tensors are little-endian in the file and are used in place");

namespace {

/// The format's own cap, so that a lying length cannot make us parse the whole of a huge file as JSON.
constexpr std::uint64_t header_cap = 100'000'000;

/// A whole number ≥ 0 that fits std::int64_t. "3", not "3.0", "-1" or 2^63.
std::int64_t whole(const json& value, const std::string& where, const char* what) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))
    throw Error(where, fmt::format("{} as whole numbers of at least 0", what), json_excerpt(value));
  return value.get<std::int64_t>();
}

const json& member(const json& object, const char* key, const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end()) throw Error(where, fmt::format("\"{}\"", key), "none");
  return *found;
}

/// One header entry, checked against the data section, which begins at byte `start` of the file; fills `span` with its
/// place there.
TensorEntry read_entry(const std::string& name, const json& value, const std::shared_ptr<const InputFile>& file,
                       std::uint64_t start, DataSpan& span) {
  const std::string where = file->path().string() + ": tensor " + excerpt(name);
  if (!value.is_object()) throw Error(where, "an object with dtype, shape and data_offsets", json_excerpt(value));
  for (const auto& [key, unused] : value.items())
    if (key != "dtype" && key != "shape" && key != "data_offsets")
      throw Error(where, "only dtype, shape and data_offsets", json_excerpt(json(key)));

  TensorEntry entry;
  entry.name = name;
  entry.file = file;
  const json& dtype = member(value, "dtype", where);
  const auto known = std::ranges::find_if(dtypes(), [&](const DTypeInfo& type) {
    return type.items == 1 && dtype.is_string() && dtype.get<std::string>() == type.name;
  });
  if (known == dtypes().end())
    throw Error(where, "one of the dtypes F64, F32, F16, BF16, F8_E4M3, F8_E5M2, I64, I32, I16, I8, U32, U8, BOOL",
                json_excerpt(dtype), dtype.is_string() ? "save the tensor in one of these dtypes" : "");
  entry.dtype = known->type;

  const json& shape = member(value, "shape", where);
  if (!shape.is_array()) throw Error(where, "shape as an array", json_excerpt(shape));
  for (const json& extent : shape) entry.shape.push_back(whole(extent, where, "shape"));

  const json& offsets = member(value, "data_offsets", where);
  if (!offsets.is_array() || offsets.size() != 2)
    throw Error(where, "data_offsets [begin, end]", json_excerpt(offsets));
  span.begin = static_cast<std::uint64_t>(whole(offsets[0], where, "data_offsets"));
  span.end = static_cast<std::uint64_t>(whole(offsets[1], where, "data_offsets"));
  const std::uint64_t data = file->size() - start;
  if (span.begin > span.end || span.end > data)
    throw Error(where, fmt::format("data_offsets inside the {} bytes of data", data),
                fmt::format("[{}, {}]", span.begin, span.end), "the file is cut short or damaged; fetch it again");
  const auto bytes = stored_bytes(entry.shape, entry.dtype);
  if (!bytes || *bytes != span.end - span.begin)
    throw Error(where,
                bytes ? fmt::format("{} bytes for shape {} of {}", *bytes, entry.shape, known->name)
                      : fmt::format("a size that fits 63 bits, for shape {} of {}", entry.shape, known->name),
                fmt::format("{} bytes", span.end - span.begin));
  entry.offset = start + span.begin;
  entry.size = span.end - span.begin;
  return entry;
}

/// Every byte of data belongs to exactly one tensor: the format forbids holes as well as overlaps.
void check_spans(std::vector<DataSpan>& spans, std::uint64_t data_size, const std::string& where) {
  sort_apart(spans, where);
  std::uint64_t end = 0;
  const std::string start = "the header";
  const std::string* before = &start;
  for (const DataSpan& s : spans) {
    if (s.begin > end)
      throw Error(where + ": tensor " + excerpt(*s.name),
                  fmt::format("data that follows {} at {}", excerpt(*before), end),
                  fmt::format("a hole of {} bytes", s.begin - end));
    end = s.end;
    before = s.name;
  }
  if (end != data_size)
    throw Error(where, fmt::format("{} bytes of data, where the last tensor ends", end), fmt::format("{}", data_size));
}

TensorFile open_one(const fs::path& path) {
  const auto file = InputFile::open(path);
  const std::string where = path.string();
  const char* const hint = "is it a safetensors file, and was it copied whole?";
  if (file->size() < 8)
    throw Error(where, "a safetensors file (8 bytes of header length)", fmt::format("{} bytes", file->size()), hint);
  std::uint64_t length = 0;
  file->read(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > header_cap)
    throw Error(where, fmt::format("a header of at most {} bytes", header_cap),
                fmt::format("a stated length of {}", length), hint);
  if (length > file->size() - 8)
    throw Error(where, fmt::format("a header inside the file of {} bytes", file->size()),
                fmt::format("a stated length of {}", length), hint);

  const std::string header = file->text(8, length);
  if (header.empty() || header.front() != '{')
    throw Error(where, "a header that begins with '{'", "something else", hint);
  const json root = parse_strict_json(header, where + ": header", 3);  // {name: {shape: []}}
  const std::uint64_t start = 8 + length;

  TensorFile::Tensors tensors;
  TensorFile::Metadata metadata;
  std::vector<DataSpan> spans;
  for (const auto& [name, value] : root.items()) {
    if (name == "__metadata__") {
      if (!value.is_object()) throw Error(where + ": __metadata__", "an object", json_excerpt(value));
      for (const auto& [key, text] : value.items()) {
        if (!text.is_string())
          throw Error(where + ": __metadata__", "strings",
                      fmt::format("{} = {}", json_excerpt(json(key)), json_excerpt(text)));
        metadata[key] = text.get<std::string>();
      }
      continue;
    }
    DataSpan span;
    const auto placed = tensors.emplace(name, read_entry(name, value, file, start, span)).first;
    span.name = &placed->first;
    spans.push_back(span);
  }
  check_spans(spans, file->size() - start, where);
  return {path, "safetensors", std::move(tensors), std::move(metadata)};
}

/// What to open of a folder.
fs::path file_of_folder(const fs::path& folder) {
  std::error_code ignored;
  for (const char* name : {"model.safetensors", "model.safetensors.index.json"})
    if (fs::exists(folder / name, ignored)) return folder / name;
  std::vector<fs::path> found;
  for (const auto& item : fs::directory_iterator(folder, ignored))
    if (item.path().extension() == ".safetensors") found.push_back(item.path());
  if (found.size() == 1) return found.front();
  throw Error(
      folder.string(), "model.safetensors, model.safetensors.index.json, or one *.safetensors",
      found.empty() ? "none" : fmt::format("{} files *.safetensors", found.size()),
      found.empty() ? "weights in other formats must be converted to safetensors first" : "name the file to open");
}

}  // namespace

SafetensorsFile SafetensorsFile::open(const fs::path& path) {
  std::error_code ignored;
  const fs::path file = fs::is_directory(path, ignored) ? file_of_folder(path) : path;
  return SafetensorsFile(file.extension() == ".json" ? open_index(file, open_one) : open_one(file));
}

}  // namespace headscope
