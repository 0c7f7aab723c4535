#include "core/model/formats/found_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/model/config.h"
#include "core/model/formats/model_files.h"

namespace headscope {

namespace fs = std::filesystem;

namespace {

constexpr int deepest = 4;
constexpr std::size_t most_entries = 100'000;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool is_model(const ModelLocation& place) {
  return place.format != ModelLocation::Format::none &&
         (place.self_contained() || is_file(place.folder / "config.json"));
}

/// Never throws: what is wrong is its `refusal`.
FoundModel look_at(const fs::path& path, const ModelLocation& place) {
  FoundModel found;
  found.name = place.name;
  found.path = path;
  try {
    found.family = config_of(place).text("model_type", "");
    if (place.format == ModelLocation::Format::none)
      throw Error(place.folder.string(), "a file of weights", place.trouble);
    const ModelFiles files = ModelFiles::open(place);
    found.format = files.tensors->format();
    for (const auto& [name, entry] : files.tensors->tensors()) {
      found.parameters += entry.elements();
      found.bytes += entry.size;
    }
    found.dims = load_config(path).dims;
  } catch (const std::exception& error) {
    found.refusal = error.what();
  }
  return found;
}

class Search {
 public:
  explicit Search(std::stop_token stop) : stop_(std::move(stop)) {}

  void folder(const fs::path& folder, int depth) {
    std::error_code gone;
    const fs::path real = fs::canonical(folder, gone);
    if (gone || !seen_.insert(real).second) return;  // a link that leads back
    const ModelLocation place = locate_model(folder);
    // An entry of the cache is a model, or what is left of one that was never fetched whole.
    if (is_model(place) || folder.filename().string().starts_with("models--")) return take(folder, place);
    std::vector<fs::path> inside;
    for (fs::directory_iterator at(folder, fs::directory_options::skip_permission_denied, gone), end;
         !gone && at != end; at.increment(gone)) {
      if (stop_.stop_requested()) throw Cancelled();
      if (++entries_ > most_entries) {
        out.remark =
            fmt::format("{}: only the first {} files and folders were looked at", folder.string(), most_entries);
        return;
      }
      inside.push_back(at->path());
    }
    std::ranges::sort(inside);
    for (const fs::path& each : inside) {
      if (stop_.stop_requested()) throw Cancelled();
      const std::string name = each.filename().string();
      if (name.starts_with('.') || name.starts_with("datasets--") || name.starts_with("spaces--")) continue;
      if (std::error_code ignored; fs::is_directory(each, ignored)) {
        if (depth < deepest) this->folder(each, depth + 1);
      } else if (could_be_weights(name) && is_file(each)) {
        if (const ModelLocation one = locate_model(each); is_model(one)) take(each, one);
      }
    }
  }

  FoundModels out;

 private:
  static bool could_be_weights(const std::string& name) {
    if (name.starts_with("mmproj")) return false;  // of pictures, beside a model of text
    return std::ranges::any_of(std::initializer_list<std::string_view>{".gguf", ".bin", ".pt", ".pth", ".safetensors"},
                               [&](std::string_view ending) { return name.ends_with(ending); });
  }
  void take(const fs::path& path, const ModelLocation& place) { out.models.push_back(look_at(path, place)); }

  std::stop_token stop_;
  std::set<fs::path> seen_;
  std::size_t entries_ = 0;
};

}  // namespace

FoundModels find_models(const fs::path& folder, const std::stop_token& stop) {
  Search search(stop);
  search.folder(folder, 0);
  std::ranges::stable_sort(search.out.models, {}, &FoundModel::name);
  return std::move(search.out);
}

}  // namespace headscope
