#include "core/io/model_location.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/json.h"
#include "core/base/user_folders.h"
#include "core/io/gguf.h"
#include "core/io/json_view.h"
#include "core/io/llama2c.h"
#include "core/io/pytorch_file.h"
#include "core/io/safetensors.h"

namespace headscope {

namespace fs = std::filesystem;

namespace {

using Format = ModelLocation::Format;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}
bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

/// By content: the name says little (.bin is PyTorch's, llama2.c's and others').
Format format_of(const fs::path& path) {
  const std::string name = path.filename().string();
  if (name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json")) return Format::safetensors;
  if (name.ends_with(".index.json")) return Format::pytorch;
  try {
    const auto file = InputFile::open(path);
    if (looks_like_gguf(*file)) return Format::gguf;
    if (looks_like_pytorch(*file)) return Format::pytorch;
    if (looks_like_llama2c(*file)) return Format::llama2c;
  } catch (const Error&) {  // whoever opens it will say why
  }
  // What it was meant to be is known by its name; its reader says what is wrong with it.
  if (name.ends_with(".gguf")) return Format::gguf;
  return name.ends_with(".bin") || name.ends_with(".pt") || name.ends_with(".pth") ? Format::pytorch
                                                                                   : Format::safetensors;
}

/// Files of `folder` whose names end so, and that hold weights.
std::vector<fs::path> files_with(const fs::path& folder, std::initializer_list<std::string_view> endings) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& item : fs::directory_iterator(folder, ignored)) {
    const std::string name = item.path().filename().string();
    const auto fits = [&](std::string_view ending) { return name.ends_with(ending); };
    // Beside weights lie the tokenizer of llama2.c and what trainers keep for themselves.
    const bool other = name == "tokenizer.bin" || name.starts_with("training_args") || name.starts_with("optimizer") ||
                       name.starts_with("scheduler") || name.starts_with("rng_state");
    if (!other && std::ranges::any_of(endings, fits) && is_file(item.path())) found.push_back(item.path());
  }
  return found;
}

void find_weights(ModelLocation& model) {
  const auto take = [&](const fs::path& path) {
    model.weights = path;
    model.format = format_of(path);
  };
  for (const char* name : {"model.safetensors", "model.safetensors.index.json"})
    if (is_file(model.folder / name)) return take(model.folder / name);
  const auto one_of = [&](std::initializer_list<std::string_view> endings) {
    const std::vector<fs::path> found = files_with(model.folder, endings);
    if (found.size() == 1) take(found.front());
    if (found.size() > 1) model.trouble = fmt::format("{} files *{}", found.size(), *endings.begin());
    return !found.empty();
  };
  if (one_of({".safetensors"})) return;
  for (const char* name : {"pytorch_model.bin", "pytorch_model.bin.index.json"})
    if (is_file(model.folder / name)) return take(model.folder / name);
  if (one_of({".gguf"}) || one_of({".bin", ".pt", ".pth"})) return;
  model.trouble = "none";
}

constexpr std::string_view cache_prefix = "models--";

/// "models--org--name" → "org/name"
std::string name_in_cache(std::string folder) {
  folder.erase(0, cache_prefix.size());
  if (const std::size_t at = folder.find("--"); at != std::string::npos) folder.replace(at, 2, "/");
  return folder;
}

std::string named(const fs::path& folder) {
  // "models/x/" and "." have no last part of their own.
  std::error_code ignored;
  fs::path whole = fs::weakly_canonical(folder, ignored);
  if (!whole.has_filename()) whole = whole.parent_path();
  // A snapshot is called after its commit; its entry says of what.
  const fs::path entry = whole.parent_path().parent_path();
  if (whole.parent_path().filename() == "snapshots" && entry.filename().string().starts_with(cache_prefix))
    return name_in_cache(entry.filename().string());
  return whole.filename().string();
}

/// A name with a folder in it could reach any place of the machine.
bool is_plain(const std::string& commit) {
  return !commit.empty() && std::ranges::all_of(commit, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
  });
}

/// The commit that a branch or tag of a cache entry is at; "" where it is not known.
std::string ref_of(const fs::path& entry, const std::string& revision) {
  if (revision.empty() || revision.front() == '/' || !is_file(entry / "refs" / revision)) return "";
  std::string commit = read_file(entry / "refs" / revision, 4096);
  while (!commit.empty() && (commit.back() == '\n' || commit.back() == '\r')) commit.pop_back();
  return commit;
}

/// The snapshot of a cache entry, or the entry itself where there is none that could be meant.
fs::path snapshot_of(const fs::path& entry) {
  const fs::path snapshots = entry / "snapshots";
  if (const std::string commit = ref_of(entry, "main"); is_plain(commit) && is_folder(snapshots / commit))
    return snapshots / commit;
  std::vector<fs::path> all;
  std::error_code ignored;
  for (const auto& item : fs::directory_iterator(snapshots, ignored))
    if (is_folder(item.path())) all.push_back(item.path());
  return all.size() == 1 ? all.front() : entry;
}

constexpr std::string_view adapter_mark = "?adapter=";

/// The model that an adapter was trained on: a path, from the adapter's folder or from here, or a name in the cache.
std::optional<fs::path> base_of(const fs::path& adapter) {
  try {
    const nlohmann::json config = read_json_file(adapter / "adapter_config.json");
    const std::string base = JsonView(config, "").text_or("base_model_name_or_path", "");
    if (base.empty()) return std::nullopt;
    std::error_code ignored;
    for (const fs::path& place : {adapter / base, fs::path(base)})
      if (fs::exists(place, ignored) && !is_adapter(place)) return place;
    return find_in_cache(base);
  } catch (const Error&) {  // whoever opens the adapter will say what is wrong with it
    return std::nullopt;
  }
}

}  // namespace

fs::path with_adapter(const fs::path& model, const fs::path& adapter) {
  std::error_code failed;
  const fs::path whole = fs::absolute(adapter, failed).lexically_normal();
  fs::path out = adapted_path(model).model;
  out += std::string(adapter_mark) + (failed ? adapter : whole).string();
  return out;
}

AdaptedPath adapted_path(const fs::path& path) {
  const std::string whole = path.string();
  const std::size_t at = whole.find(adapter_mark);
  if (at == std::string::npos) return {path, {}};
  return {whole.substr(0, at), whole.substr(at + adapter_mark.size())};
}

bool is_adapter(const fs::path& folder) {
  return is_file(folder / "adapter_config.json");
}

ModelLocation locate_model(const fs::path& path) {
  if (const AdaptedPath parts = adapted_path(path); !parts.adapter.empty()) {
    ModelLocation model = locate_model(parts.model);
    model.adapter = parts.adapter;
    model.name += " + " + named(parts.adapter);
    return model;
  }
  if (is_folder(path) && is_adapter(path)) {
    if (const auto base = base_of(path)) return locate_model(with_adapter(*base, path));
    ModelLocation model;
    model.folder = path;
    model.name = named(path);
    model.trouble = "an adapter whose model is not on this machine: open that, and the adapter with it";
    return model;
  }
  ModelLocation model;
  std::error_code ignored;
  const bool there = fs::exists(path, ignored) && !is_folder(path);  // a pipe or device too, which its reader refuses
  if (there && path.filename() != "config.json") {
    model.folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
    model.weights = path;
    model.format = format_of(path);
    const std::string file = path.filename().string();
    const bool usual = file.starts_with("model.") || file.starts_with("pytorch_model.");
    model.name = usual ? named(model.folder) : path.stem().string();
    return model;
  }
  model.folder = there ? (path.has_parent_path() ? path.parent_path() : fs::path(".")) : path;
  model.name = named(model.folder);
  if (model.name.starts_with(cache_prefix)) {
    model.name = name_in_cache(model.name);
    if (is_folder(model.folder / "snapshots")) model.folder = snapshot_of(model.folder);
  }
  find_weights(model);
  return model;
}

FilesStamp stamp_of(const ModelLocation& model) {
  const FilesStamp base = FilesStamp::of(model.self_contained() ? model.weights : model.folder);
  if (model.adapter.empty()) return base;
  std::vector<FilesStamp::File> files = base.files();
  const FilesStamp adapter = FilesStamp::of(model.adapter);
  for (FilesStamp::File file : adapter.files()) {
    file.name = "adapter/" + file.name;
    files.push_back(std::move(file));
  }
  return FilesStamp(std::move(files));
}

namespace {
void add_place(std::vector<fs::path>& to, const char* variable, const char* below) {
  const char* const value = std::getenv(variable);
  if (value && *value) to.push_back((fs::path(value) / below).lexically_normal());
}
}  // namespace

std::vector<fs::path> hugging_face_homes() {
  std::vector<fs::path> homes;
  add_place(homes, "HF_HOME", "");
  add_place(homes, "XDG_CACHE_HOME", "huggingface");
  if (const fs::path home = home_folder(); !home.empty()) homes.push_back(home / ".cache/huggingface");
  return homes;
}

std::vector<fs::path> cache_folders() {
  std::vector<fs::path> folders;
  add_place(folders, "HF_HUB_CACHE", "");
  add_place(folders, "HUGGINGFACE_HUB_CACHE", "");
  for (const fs::path& home : hugging_face_homes()) folders.push_back(home / "hub");
  return folders;
}

std::string cache_entry_name(const std::string& name) {
  std::string entry = std::string(cache_prefix) + name;
  if (const std::size_t slash = entry.find('/'); slash != std::string::npos) entry.replace(slash, 1, "--");
  return entry;
}

std::optional<fs::path> find_in_cache(const std::string& name) {
  const std::size_t at = name.find('@');
  const std::string model = name.substr(0, at), revision = at == std::string::npos ? "" : name.substr(at + 1);
  const std::size_t slash = model.find('/');
  if (slash == std::string::npos || model.find('/', slash + 1) != std::string::npos ||
      name.find("..") != std::string::npos)
    return std::nullopt;
  for (const fs::path& cache : cache_folders()) {
    const fs::path entry = cache / cache_entry_name(model);
    if (!is_folder(entry)) continue;
    if (at == std::string::npos) return entry;
    for (const std::string& commit : {ref_of(entry, revision), revision})
      if (is_plain(commit) && is_folder(entry / "snapshots" / commit)) return entry / "snapshots" / commit;
  }
  return std::nullopt;
}

TensorFile open_tensors(const ModelLocation& model) {
  const bool index = model.weights.extension() == ".json";
  switch (model.format) {
    case Format::safetensors:
      return SafetensorsFile::open(model.weights);
    case Format::pytorch:
      return index ? open_index(model.weights, open_pytorch) : open_pytorch(model.weights);
    case Format::gguf:
      return GgufFile::open(model.weights);
    case Format::llama2c:
      return open_llama2c(model.weights);
    case Format::none:
      break;
  }
  throw Error(model.folder.string(), "weights: *.safetensors, pytorch_model.bin, *.gguf, *.pt or llama2.c's *.bin",
              model.trouble, model.trouble == "none" ? "" : "name the file to open");
}

}  // namespace headscope
