#pragma once
// What a run should keep, the memory it may take, and the plan that follows from both: decided before the run, stated
// after.

#include <cstddef>
#include <optional>
#include <set>
#include <string>

#include "core/base/named_values.h"
#include "core/trace/model_info.h"
#include "core/trace/site.h"

namespace headscope {

enum class MapStorage { none, automatic, dense, factored };
inline constexpr NamedValue<MapStorage> map_storage_names[] = {{"none", MapStorage::none},
                                                               {"automatic", MapStorage::automatic},
                                                               {"dense", MapStorage::dense},
                                                               {"factored", MapStorage::factored}};

struct CaptureSpec {
  /// automatic: dense while all maps fit in half the budget, or in all of it where layers have states; else factored.
  MapStorage maps = MapStorage::automatic;
  std::set<SiteKind> sites = {};  ///< besides the maps; `pattern` here means maps = dense
  std::set<int> layers = {};      ///< empty = all
  bool all_logits = true;         ///< false: logits of the last position only
  std::size_t byte_budget = std::size_t{1} << 30;

  bool operator==(const CaptureSpec&) const = default;
};

struct CapturePlan {
  MapStorage maps = MapStorage::none;  ///< none, dense or factored
  std::size_t bytes = 0;               ///< of everything the trace will hold
  std::string summary;                 ///< "144 maps factored (3.1 MB; dense would take 604 MB), logits 206 MB"
};

/// Throws Error naming the budget and the need when the spec cannot fit.
CapturePlan plan_capture(const CaptureSpec& spec, const ModelDims& dims, int n_query, int n_key);
/// Whether a layer of this model has such a place at all (ModelDims::mixers, bare, normed_behind); true of sites
/// outside the blocks.
bool has_site(const ModelDims& dims, Site site);
/// Bytes of one site for n tokens (one layer for per-layer kinds).
std::size_t site_bytes(SiteKind kind, const ModelDims& dims, int n_query, int n_key);

}  // namespace headscope
