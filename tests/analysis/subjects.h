#pragma once
// What the tests of reading tools share: a small model with a trace that recorded everything.

#include <memory>
#include <string>
#include <vector>

#include "core/model/weights.h"
#include "core/run/run_request.h"
#include "tests/support/paths.h"

namespace headscope::testing {

struct ReadSubject {
  Backend backend{2};
  LoadedModel loaded;
  RunRequest request;
  std::shared_ptr<const Trace> trace;
  ModelWeights weights;

  explicit ReadSubject(const std::string& folder, std::vector<std::int32_t> ids = {5, 9, 5, 30, 9, 5, 17, 2},
                       std::vector<Intervention> edits = {}) {
    loaded.model = Model::load(reference(folder), backend);
    request.ids = std::move(ids);
    request.edits = std::move(edits);
    for (const SiteKind kind : loaded.model->sites()) request.capture.sites.insert(kind);
    trace = run(loaded, request, ctx());
    weights = loaded.model->weights();
  }
  Ctx ctx() { return {.backend = backend}; }
  const Model& model() const { return *loaded.model; }
  const ModelDims& dims() const { return loaded.model->config().dims; }
  const Tensor& site(SiteKind kind, int layer = -1) const { return trace->sites.at({kind, layer}); }
};

/// x (row) · W (in, out) + b, by its definition.
inline std::vector<double> times(const std::vector<double>& x, const Tensor& w, const Tensor& b = {}) {
  std::vector<double> out(static_cast<std::size_t>(w.dim(1)));
  for (Index j = 0; j < w.dim(1); ++j) {
    double sum = b.defined() ? static_cast<double>(b.at(j)) : 0;
    for (Index i = 0; i < w.dim(0); ++i) sum += x[static_cast<std::size_t>(i)] * static_cast<double>(w.at(i, j));
    out[static_cast<std::size_t>(j)] = sum;
  }
  return out;
}

inline std::vector<double> row(const Tensor& t, Index i) {
  std::vector<double> out;
  for (Index j = 0; j < t.dim(1); ++j) out.push_back(static_cast<double>(t.at(i, j)));
  return out;
}

}  // namespace headscope::testing
