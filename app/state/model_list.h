#pragma once
// Which models lie on this machine, looked up beside the UI thread; what was found last stays until the next answer.
// Thread rule: the UI thread.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "app/model_places.h"
#include "app/state/job_runner.h"
#include "core/hub/manifest.h"
#include "core/model/formats/found_models.h"

namespace headscope {

struct ListedModel {
  FoundModel model;
  std::string place;  ///< "bundled", "Hugging Face cache", or the folder that the user named
};

/// One that can be fetched.
struct OfferedModel {
  ManifestEntry entry;
  InCache here = InCache::none;
};

struct ModelsHere {
  std::vector<ListedModel> models;
  std::vector<OfferedModel> offered;
  std::vector<std::string> remarks;  ///< what was not looked at, and why
};

/// The work itself; any thread. Throws Cancelled.
ModelsHere look_for_models(const std::vector<std::filesystem::path>& folders, const std::stop_token& stop);
/// "6 × 8 heads · 1.2 GB · safetensors", of what is known.
std::string shape_text(const FoundModel& model);

/// A model's folder or file as people call it: its name, or "org/name" of a snapshot in the cache.
std::string model_label(const std::filesystem::path& place);

class ModelList {
 public:
  /// Looks again; `folders` are the user's own.
  void look(JobRunner& jobs, const std::vector<std::filesystem::path>& folders);
  /// Null before the first answer.
  const std::shared_ptr<const ModelsHere>& last() const { return *last_; }
  bool under_way() const { return *looking_; }

 private:
  // A late answer may outlive this.
  std::shared_ptr<std::shared_ptr<const ModelsHere>> last_ = std::make_shared<std::shared_ptr<const ModelsHere>>();
  std::shared_ptr<bool> looking_ = std::make_shared<bool>(false);
};

}  // namespace headscope
