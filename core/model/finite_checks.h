#pragma once
// What a pass has computed, looked through for NaN and infinity. On a device that computes by itself nothing waits for
// the finding, which is read at the end. Thread rule: one thread, that of the pass.

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/tensor/backend.h"
#include "core/trace/site.h"

namespace headscope {

class FiniteChecks {
 public:
  /// `first`: the position of row 0. `model`, the name that an error begins with, must outlive this.
  FiniteChecks(Backend& backend, const std::string& model, Index first) : b_(backend), model_(model), first_(first) {}

  /// Throws Error naming site, position and dimension, here or in read().
  void look(const Tensor& x, Site site) {
    b_.look_through(x);
    sites_.push_back(site);
    if (!b_.asynchronous()) read();
  }

  void read() {
    const std::vector<Backend::NotFinite> found = b_.not_finite();
    const std::vector<Site> sites = std::exchange(sites_, {});
    for (std::size_t i = 0; i < found.size(); ++i)
      if (found[i].row >= 0)
        throw Error(
            fmt::format("{}: {}", model_, name(sites[i])), "finite numbers",
            fmt::format("{} at position {}, dimension {}", found[i].value, first_ + found[i].row, found[i].column),
            "the weights may be damaged, or an edit drove the activations out of range");
  }

 private:
  Backend& b_;
  const std::string& model_;
  const Index first_;
  std::vector<Site> sites_;  // whose finding was not read yet
};

}  // namespace headscope
