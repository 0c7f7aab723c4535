#include "app/state/model_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

#include "core/base/memory.h"
#include "core/base/words.h"
#include "core/io/model_location.h"
#include "core/trace/model_heads.h"

namespace headscope {

ModelsHere look_for_models(const std::vector<std::filesystem::path>& folders, const std::stop_token& stop) {
  ModelsHere here;
  for (const ModelPlace& place : model_places(folders)) {
    FoundModels found = find_models(place.folder, stop);
    const std::string words = place.kind == "cache"     ? said("Hugging Face cache")
                              : place.kind == "bundled" ? said("comes with Headscope")
                                                        : place.folder.string();
    for (FoundModel& model : found.models) here.models.push_back({std::move(model), words});
    if (!found.remark.empty()) here.remarks.push_back(found.remark);
  }
  try {
    if (const auto file = manifest_file())
      for (ManifestEntry& entry : read_manifest(*file)) {
        const InCache in = in_cache(entry.name);
        here.offered.push_back({std::move(entry), in});
      }
  } catch (const std::exception& broken) {
    here.remarks.emplace_back(broken.what());
  }
  return here;
}

std::string shape_text(const FoundModel& model) {
  std::vector<std::string> parts;
  if (model.dims.layers > 0) parts.push_back(say("{} × {} heads", model.dims.layers, heads_text(model.dims)));
  if (model.bytes > 0) parts.push_back(memory_text(static_cast<double>(model.bytes)));
  if (!model.format.empty()) parts.push_back(model.format);
  return fmt::format("{}", fmt::join(parts, " · "));
}

std::string model_label(const std::filesystem::path& path) {
  const auto [place, adapter] = adapted_path(path);
  if (!adapter.empty()) return model_label(place) + " + " + adapter.filename().string();
  const std::string name = place.filename().string();
  if (place.parent_path().filename() != "snapshots") return name;
  constexpr std::string_view prefix = "models--";
  std::string entry = place.parent_path().parent_path().filename().string();
  if (!entry.starts_with(prefix)) return name;
  entry.erase(0, prefix.size());
  if (const std::size_t at = entry.find("--"); at != std::string::npos) entry.replace(at, 2, "/");
  return entry;
}

void ModelList::look(JobRunner& jobs, const std::vector<std::filesystem::path>& folders) {
  *looking_ = true;
  jobs.on_files("models", [last = last_, looking = looking_, folders](Worker::Job& job) -> Worker::Deliver {
    auto found = std::make_shared<const ModelsHere>(look_for_models(folders, job.stop));
    return [last, looking, found] {
      *last = found;
      *looking = false;
    };
  });
}

}  // namespace headscope
