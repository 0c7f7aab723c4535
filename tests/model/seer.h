#pragma once
// A model of pictures of tests/reference/vision, and what is asked of it.

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/io/safetensors.h"
#include "core/model/formats/model_files.h"
#include "core/run/pass_memory.h"
#include "tests/model/parity.h"
#include "tests/support/paths.h"

namespace headscope::testing {

inline const std::filesystem::path picture_file = reference("vision") / "picture.png";

struct Seer {
  Backend backend{2};
  std::filesystem::path folder;
  LoadedModel loaded;
  SafetensorsFile expected;
  explicit Seer(const std::string& name)
      : folder(reference("vision") / name),
        loaded(load_model(folder, backend)),
        expected(SafetensorsFile::open(folder / "expected.safetensors")) {}
  const ModelConfig& config() const { return loaded.model->config(); }
  RunRequest request(std::vector<std::string> edits = {}) const {
    RunRequest out;
    out.model = folder;
    out.image = picture_file;
    for (const std::string& edit : edits) out.edits.push_back(parse_intervention(edit, "test"));
    return out;
  }
  std::shared_ptr<const Trace> trace(const RunRequest& request) { return run(loaded, request, Ctx{backend}); }
};

inline RunRequest with_sites(RunRequest request, std::set<SiteKind> sites) {
  request.capture.sites = std::move(sites);
  return request;
}

}  // namespace headscope::testing
