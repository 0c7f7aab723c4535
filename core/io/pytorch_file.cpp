#include "core/io/pytorch_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/json.h"
#include "core/io/pickle.h"
#include "core/io/zip_directory.h"

namespace headscope {

namespace {

using Kind = PickleValue::Kind;

constexpr std::uint64_t pickle_limit = std::uint64_t{32} << 20;
constexpr std::size_t most_configured = 4096;  // values of a configuration
constexpr std::string_view zip_magic("PK\3\4", 4);
/// The first of five pickles of the older form is a number: protocol 2, an integer of ten bytes, this one.
constexpr std::string_view old_magic("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19\x2e", 15);

/// Read as the dict of its fields.
constexpr std::string_view configuration_class = "transformer_lens.HookedTransformerConfig.HookedTransformerConfig";

struct TypeName {
  std::string_view storage, dtype;  ///< of torch
  DType type;
};
constexpr std::array type_names{
    TypeName{"FloatStorage", "float32", DType::f32}, TypeName{"DoubleStorage", "float64", DType::f64},
    TypeName{"HalfStorage", "float16", DType::f16},  TypeName{"BFloat16Storage", "bfloat16", DType::bf16},
    TypeName{"LongStorage", "int64", DType::i64},    TypeName{"IntStorage", "int32", DType::i32},
    TypeName{"ShortStorage", "int16", DType::i16},   TypeName{"CharStorage", "int8", DType::i8},
    TypeName{"ByteStorage", "uint8", DType::u8},     TypeName{"BoolStorage", "bool", DType::boolean},
    TypeName{"", "float8_e4m3fn", DType::f8_e4m3},   TypeName{"", "float8_e5m2", DType::f8_e5m2},
};

std::optional<DType> type_of(std::string_view global, std::string_view TypeName::*names) {
  if (!global.starts_with("torch.")) return std::nullopt;
  global.remove_prefix(6);
  for (const TypeName& each : type_names)
    if (!(each.*names).empty() && each.*names == global) return each.type;
  return std::nullopt;
}

struct Storage {
  std::string key;
  std::optional<DType> type;  ///< none: untyped, counted in bytes
  std::int64_t items = 0;
};
struct SavedTensor {
  std::size_t storage = 0;
  DType type = DType::f32;
  std::int64_t offset = 0;
  std::vector<std::int64_t> shape, strides;
};

/// The names that a state dict needs. Values they make are `special`, their integer a place in `tensors`, or, in front
/// of that, the negative of one in `storages` less one.
class TorchRules final : public PickleRules {
 public:
  bool knows(const std::string& global) const override {
    static constexpr std::array<std::string_view, 8> callable = {"collections.OrderedDict",
                                                                 configuration_class,
                                                                 "torch.device",
                                                                 "torch._utils._rebuild_tensor_v2",
                                                                 "torch._utils._rebuild_tensor_v3",
                                                                 "torch._utils._rebuild_parameter",
                                                                 "torch.Size",
                                                                 "torch.storage.UntypedStorage"};
    return std::ranges::find(callable, global) != callable.end() || type_of(global, &TypeName::storage) ||
           type_of(global, &TypeName::dtype);
  }

  PickleValue call(const Pickle& pickle, const std::string& global, const PickleValue& arguments) override {
    const std::vector<PickleRef>& given = arguments.items;
    const auto need = [&](std::size_t count) {
      if (given.size() < count)
        throw Error(pickle.where(), fmt::format("{} arguments of {}", count, global), fmt::format("{}", given.size()));
    };
    if (global == "collections.OrderedDict") {
      PickleValue dict{.kind = Kind::dict};
      if (!given.empty())
        for (const PickleRef pair : pickle.items(given[0], "pairs of an OrderedDict")) {
          const std::vector<PickleRef>& both = pickle.items(pair, "a pair of an OrderedDict");
          if (both.size() != 2)
            throw Error(pickle.where(), "key and value of an OrderedDict", fmt::format("{} values", both.size()));
          dict.items.insert(dict.items.end(), both.begin(), both.end());
        }
      return dict;
    }
    if (global == configuration_class) return {.kind = Kind::dict, .text = global};
    if (global == "torch.device") {
      need(1);
      return {.kind = Kind::text, .text = pickle.text(given[0], "a device's name")};
    }
    if (global == "torch.Size") {
      need(1);
      return {.kind = Kind::tuple, .items = pickle.items(given[0], "the extents of a torch.Size")};
    }
    if (global == "torch._utils._rebuild_parameter") {
      need(1);
      return pickle[given[0]];
    }
    if (!global.starts_with("torch._utils._rebuild_tensor"))
      throw Error(pickle.where(), "tensors, dicts, lists, strings and numbers only",
                  fmt::format("a call of {}", excerpt(global, 120)));
    need(global.ends_with("v3") ? 7 : 4);
    SavedTensor tensor;
    tensor.storage = storage_of(pickle, given[0]);
    tensor.offset = pickle.integer(given[1], "a tensor's offset");
    tensor.shape = integers(pickle, given[2], "a tensor's shape");
    tensor.strides = integers(pickle, given[3], "a tensor's strides");
    const std::optional<DType> type =
        global.ends_with("v3") ? type_of(pickle[given[6]].text, &TypeName::dtype) : storages[tensor.storage].type;
    if (!type) throw Error(pickle.where(), "a tensor's dtype", "none that is known");
    tensor.type = *type;
    tensors.push_back(std::move(tensor));
    return {.kind = Kind::special, .integer = static_cast<std::int64_t>(tensors.size() - 1)};
  }

  /// ("storage", class, key, device, number of items), in the older form with the view of another storage that it is.
  PickleValue persistent(const Pickle& pickle, const PickleValue& id) override {
    if (id.kind != Kind::tuple || id.items.size() < 5 || pickle.text(id.items[0], "a kind of object") != "storage")
      throw Error(pickle.where(), "the id of a storage", "another one");
    if (id.items.size() > 5 && pickle[id.items[5]].kind != Kind::none)
      throw Error(pickle.where(), "storages of their own", "one that is a part of another",
                  "save the state dict anew with a newer PyTorch");
    Storage storage;
    const PickleValue& type = pickle[id.items[1]];
    if (type.kind == Kind::global) storage.type = type_of(type.text, &TypeName::storage);
    if (!storage.type && type.text != "torch.storage.UntypedStorage")
      throw Error(pickle.where(), "the type of a storage", excerpt(type.text, 60));
    storage.key = pickle.text(id.items[2], "a storage's key");
    storage.items = pickle.integer(id.items[4], "a storage's size");
    storages.push_back(std::move(storage));
    return {.kind = Kind::special, .integer = -static_cast<std::int64_t>(storages.size())};
  }

  std::vector<SavedTensor> tensors;
  std::vector<Storage> storages;

 private:
  std::size_t storage_of(const Pickle& pickle, PickleRef ref) const {
    const PickleValue& value = pickle[ref];
    if (value.kind != Kind::special || value.integer >= 0)
      throw Error(pickle.where(), "a tensor's storage", "another value");
    return static_cast<std::size_t>(-value.integer - 1);
  }

  static std::vector<std::int64_t> integers(const Pickle& pickle, PickleRef ref, const char* what) {
    const std::vector<PickleRef>& items = pickle.items(ref, what);
    if (items.size() > 64) throw Error(pickle.where(), "at most 64 axes", fmt::format("{}", items.size()));
    std::vector<std::int64_t> numbers;
    for (const PickleRef each : items) numbers.push_back(pickle.integer(each, what));
    return numbers;
  }
};

/// Where a storage lies.
struct StoredAt {
  std::uint64_t offset = 0, size = 0;
};

std::vector<std::int64_t> row_strides(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t axis = shape.size(); axis-- > 1;)
    strides[axis - 1] = strides[axis] * std::max<std::int64_t>(1, shape[axis]);
  return strides;
}

/// Whether `a` and `b` walk through a tensor of this shape alike: the stride of an axis of one item says nothing.
bool same_walk(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& a,
               const std::vector<std::int64_t>& b) {
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    if (shape[axis] != 1 && a[axis] != b[axis]) return false;
  return true;
}

TensorEntry entry_of(const std::string& name, const SavedTensor& saved, const Storage& storage,
                     const std::map<std::string, StoredAt>& places, const std::shared_ptr<const InputFile>& file) {
  const std::string where = file->path().string() + ": tensor " + excerpt(name);
  const auto place = places.find(storage.key);
  if (place == places.end())
    throw Error(where, fmt::format("its storage {}", excerpt(storage.key, 40)), "none in the file",
                "the file may be cut short; fetch it again");
  const std::uint64_t item = dtype_size(saved.type), told = storage.type ? dtype_size(*storage.type) : 1;
  if (storage.items < 0 || static_cast<std::uint64_t>(storage.items) > place->second.size / told)
    throw Error(where, fmt::format("a storage of {} × {} bytes", storage.items, told),
                fmt::format("{} bytes", place->second.size), "the file may be cut short; fetch it again");
  const auto room = static_cast<std::int64_t>(static_cast<std::uint64_t>(storage.items) * told / item);

  // The last item that the tensor reaches must be in its storage, and no item may stand for two: then nothing that a
  // file says can take more memory than the file has bytes.
  std::int64_t count = 1, last = 0;
  bool fits = saved.shape.size() == saved.strides.size() && saved.offset >= 0;
  for (std::size_t axis = 0; fits && axis < saved.shape.size(); ++axis) {
    const std::int64_t extent = saved.shape[axis], stride = saved.strides[axis];
    std::int64_t reach = 0;
    fits = extent >= 0 && stride >= 0 && !__builtin_mul_overflow(count, std::max<std::int64_t>(extent, 1), &count) &&
           !__builtin_mul_overflow(std::max<std::int64_t>(extent - 1, 0), stride, &reach) &&
           !__builtin_add_overflow(last, reach, &last);
  }
  const bool empty = std::ranges::find(saved.shape, 0) != saved.shape.end();
  if (!fits || (!empty && (count > room || last >= room || saved.offset >= room - last)))
    throw Error(where, fmt::format("a view of its storage of {} items", room),
                fmt::format("shape {}, strides {}, from item {} on", saved.shape, saved.strides, saved.offset));
  TensorEntry entry;
  entry.name = name;
  entry.dtype = saved.type;
  entry.shape = saved.shape;
  entry.file = file;
  if (empty) return entry;
  entry.offset = place->second.offset + static_cast<std::uint64_t>(saved.offset) * item;
  entry.size = static_cast<std::uint64_t>(last + 1) * item;
  if (!same_walk(saved.shape, saved.strides, row_strides(saved.shape))) entry.strides = saved.strides;
  return entry;
}

bool is_tensor(const PickleValue& value) {
  return value.kind == Kind::special && value.integer >= 0;
}

bool holds_tensors(const Pickle& pickle, const PickleValue& value) {
  if (value.kind != Kind::dict) return false;
  for (std::size_t i = 1; i < value.items.size(); i += 2)
    if (is_tensor(pickle[value.items[i]])) return true;
  return false;
}

/// What of a value is text, numbers, truth values and lists or dicts of them, as JSON; null for the rest. Values may
/// hold themselves and one another many times: only so deep, and `left` values together.
nlohmann::json json_of(const Pickle& pickle, const PickleValue& value, std::size_t& left, int depth = 4) {
  if (depth == 0 || left == 0) return nullptr;
  --left;
  switch (value.kind) {
    case Kind::boolean:
      return value.integer != 0;
    case Kind::integer:
      return value.integer;
    case Kind::real:
      return value.real;
    case Kind::text:
    case Kind::global:  // torch.float32
      return excerpt(value.text, 200);
    case Kind::tuple:
    case Kind::list: {
      nlohmann::json list = nlohmann::json::array();
      for (std::size_t i = 0; i < value.items.size() && left > 0; ++i)
        list.push_back(json_of(pickle, pickle[value.items[i]], left, depth - 1));
      return list;
    }
    case Kind::dict: {
      nlohmann::json dict = nlohmann::json::object();
      for (std::size_t i = 1; i < value.items.size() && left > 0; i += 2)
        if (const PickleValue& key = pickle[value.items[i - 1]]; key.kind == Kind::text)
          dict[excerpt(key.text, 200)] = json_of(pickle, pickle[value.items[i]], left, depth - 1);
      return dict;
    }
    default:
      return nullptr;
  }
}

/// The configuration that a checkpoint holds beside its state dict, as JSON under "config".
TensorFile::Metadata metadata_of(const Pickle& pickle) {
  const PickleValue& whole = pickle.result();
  if (whole.kind != Kind::dict) return {};
  for (std::size_t i = 0; i + 1 < whole.items.size(); i += 2) {
    const std::string& key = pickle[whole.items[i]].text;
    const PickleValue& value = pickle[whole.items[i + 1]];
    std::size_t left = most_configured;
    if ((key == "cfg" || key == "config") && value.kind == Kind::dict)
      return {{"config", json_of(pickle, value, left).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)}};
  }
  return {};
}

/// The state dict in what was saved. Checkpoints of trainers hold it under one of a few names.
const PickleValue& state_dict(const Pickle& pickle) {
  const PickleValue& whole = pickle.result();
  if (holds_tensors(pickle, whole)) return whole;
  std::string keys;
  if (whole.kind == Kind::dict)
    for (std::size_t i = 0; i + 1 < whole.items.size(); i += 2) {
      const std::string& key = pickle[whole.items[i]].text;
      const PickleValue& value = pickle[whole.items[i + 1]];
      if ((key == "state_dict" || key == "model_state_dict" || key == "model") && holds_tensors(pickle, value))
        return value;
      if (keys.size() < 100) keys += (keys.empty() ? "" : ", ") + excerpt(key, 40);
    }
  throw Error(pickle.where(), "a dict of tensors, or one under state_dict, model_state_dict or model",
              keys.empty() ? "none" : "a dict of " + keys, "save model.state_dict()");
}

struct Saved {
  TensorFile::Tensors tensors;
  TensorFile::Metadata metadata;
};

Saved tensors_of(const Pickle& pickle, const TorchRules& rules, const std::map<std::string, StoredAt>& places,
                 const std::shared_ptr<const InputFile>& file) {
  const PickleValue& dict = state_dict(pickle);
  TensorFile::Tensors tensors;
  for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const PickleValue& value = pickle[dict.items[i + 1]];
    if (!is_tensor(value)) continue;  // settings beside the tensors
    const std::string& name = pickle.text(dict.items[i], "a tensor's name");
    const SavedTensor& saved = rules.tensors[static_cast<std::size_t>(value.integer)];
    tensors.insert_or_assign(name, entry_of(name, saved, rules.storages[saved.storage], places, file));
  }
  return {std::move(tensors), metadata_of(pickle)};
}

Saved open_archive(const std::shared_ptr<const InputFile>& file) {
  const std::string where = file->path().string();
  const std::map<std::string, ZipMember> members = stored_members(*file);
  const auto data = std::ranges::find_if(
      members, [](const auto& member) { return member.first == "data.pkl" || member.first.ends_with("/data.pkl"); });
  if (data == members.end())
    throw Error(where, "data.pkl in the archive", fmt::format("{} members, none of that name", members.size()),
                "is it a file of torch.save?");
  if (data->second.size > pickle_limit)
    throw Error(where + ": data.pkl", fmt::format("at most {} bytes", pickle_limit),
                fmt::format("{}", data->second.size));
  const std::string folder = data->first.substr(0, data->first.size() - std::string_view("data.pkl").size());
  if (const auto order = members.find(folder + "byteorder"); order != members.end())
    if (const std::string told = file->text(order->second.offset, std::min<std::uint64_t>(order->second.size, 16));
        told != "little")
      throw Error(where + ": byteorder", "little", excerpt(told));
  TorchRules rules;
  const std::string bytes = file->text(data->second.offset, data->second.size);
  const Pickle pickle(bytes, where + ": data.pkl", rules);
  std::map<std::string, StoredAt> places;
  for (const auto& [name, member] : members)
    if (name.starts_with(folder + "data/")) places[name.substr(folder.size() + 5)] = {member.offset, member.size};
  return tensors_of(pickle, rules, places, file);
}

/// Five pickles (a number, a version, the machine, the object, the keys of its storages), then each storage: its number
/// of items and its bytes.
Saved open_old(const std::shared_ptr<const InputFile>& file) {
  const std::string where = file->path().string();
  const std::string bytes = file->text(0, static_cast<std::size_t>(std::min(file->size(), pickle_limit)));
  std::string_view rest = std::string_view(bytes).substr(old_magic.size());
  TorchRules rules;
  const auto next = [&](const char* what) {
    Pickle pickle(rest, fmt::format("{}: {}", where, what), rules);
    rest.remove_prefix(pickle.length());
    return pickle;
  };
  next("the version");
  next("the machine");
  const Pickle object = next("the saved object");
  const Pickle keys = next("the storages' keys");
  if (keys.result().kind != Kind::list) throw Error(keys.where(), "a list", "something else");
  std::map<std::string, std::uint64_t> item_sizes;
  for (const Storage& storage : rules.storages)
    if (storage.type) item_sizes[storage.key] = dtype_size(*storage.type);
  std::uint64_t at = bytes.size() - rest.size();
  std::map<std::string, StoredAt> places;
  for (const PickleRef ref : keys.result().items) {
    const std::string& key = keys.text(ref, "a storage's key");
    const std::string who = fmt::format("{}: storage {}", where, excerpt(key, 40));
    const auto size = item_sizes.find(key);
    if (size == item_sizes.end()) throw Error(who, "a storage of a tensor", "one that nobody uses");
    std::uint64_t items = 0, length = 0;
    if (file->size() - at < sizeof items) throw Error(who, "its size", "the end of the file");
    file->read(at, std::as_writable_bytes(std::span(&items, 1)));
    at += sizeof items;
    if (__builtin_mul_overflow(items, size->second, &length) || length > file->size() - at)
      throw Error(who, fmt::format("{} × {} bytes", items, size->second),
                  fmt::format("{} to the end", file->size() - at), "the file may be cut short; fetch it again");
    places[key] = {at, length};
    at += length;
  }
  return tensors_of(object, rules, places, file);
}

bool begins(const InputFile& file, std::string_view magic) {
  return file.size() >= magic.size() && file.text(0, magic.size()) == magic;
}

}  // namespace

bool looks_like_pytorch(const InputFile& file) {
  return begins(file, zip_magic) || begins(file, old_magic);
}

TensorFile open_pytorch(const std::filesystem::path& path) {
  const auto file = InputFile::open(path);
  const auto opened = [&](const char* format, Saved saved) {
    return TensorFile(path, format, std::move(saved.tensors), std::move(saved.metadata));
  };
  if (begins(*file, zip_magic)) return opened("PyTorch", open_archive(file));
  if (begins(*file, old_magic)) return opened("PyTorch (before 1.6)", open_old(file));
  throw Error(path.string(), "a file of torch.save", fmt::format("{} bytes of something else", file->size()),
              "was it copied whole?");
}

}  // namespace headscope
