#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>
#include <set>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/io/safetensors.h"

namespace headscope {

using nlohmann::json;

namespace {

std::size_t byte_size(DType dtype, const std::vector<std::int64_t>& shape) {
  std::size_t size = dtype_size(dtype);
  for (const std::int64_t extent : shape) size *= static_cast<std::size_t>(extent);
  return size;
}

/// A JSON string; Error when the bytes are not UTF-8, which JSON cannot hold.
std::string quoted(const std::string& text, const std::string& where) {
  try {
    return json(text).dump();
  } catch (const json::exception&) {
    throw Error(where, "names and metadata in UTF-8", json(text).dump(-1, ' ', true, json::error_handler_t::replace));
  }
}

}  // namespace

void SafetensorsWriter::add(std::string name, DType dtype, std::vector<std::int64_t> shape, Produce produce) {
  items_.push_back({std::move(name), dtype, std::move(shape), std::move(produce)});
}

void SafetensorsWriter::add(std::string name, const Tensor& tensor) {
  std::vector<std::int64_t> shape;
  for (int axis = 0; axis < tensor.rank(); ++axis) shape.push_back(tensor.dim(axis));
  add(std::move(name), DType::f32, std::move(shape), [tensor](std::ostream& out) {
    const Tensor packed = tensor.packed();
    out.write(reinterpret_cast<const char*>(packed.data()), static_cast<std::streamsize>(packed.bytes()));
  });
}

void SafetensorsWriter::metadata(std::string key, std::string value) {
  metadata_[std::move(key)] = std::move(value);
}

void SafetensorsWriter::write(const std::filesystem::path& path,
                              const std::function<void(std::size_t, std::size_t)>& progress) const {
  const std::string where = path.string();
  // Wide items first: then every tensor starts at a multiple of its item size and can be used where it is mapped.
  std::vector<const Item*> order;
  std::set<std::string> names;
  for (const Item& item : items_) {
    if (item.name == "__metadata__" || !names.insert(item.name).second)
      throw Error(where, "every tensor name once, none called __metadata__", item.name);
    order.push_back(&item);
  }
  std::ranges::stable_sort(order, std::greater{}, [](const Item* item) { return dtype_size(item->dtype); });

  std::string header = "{";
  const auto next = [&] { header += header.size() > 1 ? "," : ""; };
  if (!metadata_.empty()) {
    std::string pairs;
    for (const auto& [key, value] : metadata_)
      pairs += (pairs.empty() ? "" : ",") + quoted(key, where) + ":" + quoted(value, where);
    header += "\"__metadata__\":{" + pairs + "}";
  }
  std::size_t total = 0;
  for (const Item* item : order) {
    next();
    const std::size_t end = total + byte_size(item->dtype, item->shape);
    header += fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", quoted(item->name, where),
                          dtype_name(item->dtype), fmt::join(item->shape, ","), total, end);
    total = end;
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');  // the data then starts at a multiple of 8

  write_file_atomically(path, [&](std::ostream& out) {
    const std::uint64_t length = header.size();
    out.write(reinterpret_cast<const char*>(&length), sizeof length);
    out << header;
    std::size_t done = 0;
    for (const Item* item : order) {
      if (progress) progress(done, total);
      const std::size_t size = byte_size(item->dtype, item->shape);
      const auto begin = out.tellp();
      item->produce(out);
      if (!out) return;  // write_file_atomically says why
      if (const auto wrote = static_cast<std::size_t>(out.tellp() - begin); wrote != size)
        throw Error(where + ": tensor " + item->name, fmt::format("{} bytes for shape {}", size, item->shape),
                    fmt::format("{} written", wrote));
      done += size;
    }
    if (progress) progress(done, total);
  });
}

}  // namespace headscope
