#pragma once
// Two small models of different kinds, one sentence, and what comes of it under edits.

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/run/run_request.h"
#include "tests/support/paths.h"

namespace headscope::testing {

inline constexpr Index tokens = 12;
inline constexpr const char* families[] = {"gpt2-random", "llama-gqa"};

struct Bench {
  explicit Bench(const char* name) : loaded(load_model(reference(name), backend)) {
    plain.model = reference(name);
    plain.ids = {3, 14, 15, 9, 2, 6, 5, 3, 5, 8, 9, 7};
    plain.capture.maps = MapStorage::dense;
  }
  std::shared_ptr<const Trace> operator()(const std::vector<std::string>& edits, std::set<SiteKind> sites = {}) {
    RunRequest request = plain;
    for (const std::string& edit : edits) request.edits.push_back(parse_intervention(edit, "test"));
    request.capture.sites = std::move(sites);
    return run(loaded, request, Ctx{backend});
  }
  std::string refused(const std::vector<std::string>& edits) {
    try {
      (*this)(edits);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }
  bool rotary() const { return loaded.model->config().position == PositionKind::rotary; }
  const ModelDims& dims() const { return loaded.model->config().dims; }

  Backend backend{1};
  LoadedModel loaded;
  RunRequest plain;
};

}  // namespace headscope::testing
