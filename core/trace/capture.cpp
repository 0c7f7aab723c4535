#include "core/trace/capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "core/base/error.h"
#include "core/trace/attention_map.h"

namespace headscope {

namespace {

constexpr std::size_t most = std::numeric_limits<std::size_t>::max();

// Sizes saturate instead of wrapping round: an absurd configuration must not look as if it fitted.
std::size_t times(std::size_t a, std::size_t b) {
  return b != 0 && a > most / b ? most : a * b;
}
std::size_t plus(std::size_t a, std::size_t b) {
  return a > most - b ? most : a + b;
}
std::size_t count(int n) {
  return n > 0 ? static_cast<std::size_t>(n) : 0;
}
std::size_t floats(std::size_t a, std::size_t b, std::size_t c = 1) {
  return times(sizeof(float), times(times(a, b), c));
}

std::string megabytes(std::size_t bytes) {
  const double value = static_cast<double>(bytes);
  if (value >= 1e9) return fmt::format("{:.2f} GB", value / 1e9);
  if (value >= 1e6) return value >= 1e8 ? fmt::format("{:.0f} MB", value / 1e6) : fmt::format("{:.1f} MB", value / 1e6);
  return value >= 1e3 ? fmt::format("{:.1f} kB", value / 1e3) : fmt::format("{} bytes", bytes);
}

// What HeadStats and the stored overview of one map take at most.
std::size_t statistics_bytes(int n_query, int n_key) {
  const std::size_t queries = count(n_query), keys = count(n_key);
  const std::size_t per_query = sizeof(double) + 6 * sizeof(float) + sizeof(std::int32_t);
  const auto cells = static_cast<std::size_t>(stored_overview_cells);
  const std::size_t bin = std::max<std::size_t>((std::max(queries, keys) + cells - 1) / cells, 1);
  const std::size_t overview = floats((queries + bin - 1) / bin, (keys + bin - 1) / bin);
  return times(queries, per_query) + times(keys, sizeof(double)) + times(queries + keys, sizeof(double)) + overview;
}

// Of what the patterns of a layer with a state are made of, for each token (core/attention/linear_cells.h); 0 of
// attention.
std::size_t pattern_bytes(const ModelDims& dims) {
  const std::size_t lanes = count(dims.lanes), states = times(count(dims.state_groups), count(dims.d_state));
  const std::size_t both = plus(lanes, states);
  if (dims.attends()) return 0;
  switch (dims.state_kind) {
    case StateKind::selective:
      return floats(2, both);
    case StateKind::delta:
      return plus(floats(2, both), floats(1, lanes));
    case StateKind::convolution:
      return floats(3, count(dims.d_inner));
  }
  return 0;
}

struct Costs {
  std::size_t dense_maps = 0, factored_maps = 0;  // all recorded layers, statistics included
  std::size_t sites = 0, logits = 0;
};

/// Layers that are alike, and how many of them are recorded.
struct Alike {
  int layer = 0;
  std::size_t count = 0;
  ModelDims dims;  // of a model of such layers
};

std::vector<Alike> alike_layers(const CaptureSpec& spec, const ModelDims& dims) {
  if (dims.mixers.empty() && dims.bare.empty() && dims.widths.empty() && dims.normed_behind.empty())
    return {{0, spec.layers.empty() ? count(dims.layers) : spec.layers.size(), dims}};
  std::vector<Alike> out;
  for (int layer = 0; layer < dims.layers; ++layer)
    if (spec.layers.empty() || spec.layers.contains(layer)) out.push_back({layer, 1, dims.of_layer(layer)});
  return out;
}

Costs costs_of(const CaptureSpec& spec, const ModelDims& dims, const std::vector<Alike>& layers, int n_query,
               int n_key) {
  const auto has = [&](SiteKind kind) { return spec.sites.count(kind) > 0; };
  Costs costs;
  for (const Alike& each : layers) {
    const std::size_t statistics = times(count(each.dims.heads), statistics_bytes(n_query, n_key));
    const std::size_t dense = plus(statistics, site_bytes(SiteKind::pattern, each.dims, n_query, n_key));
    costs.dense_maps = plus(costs.dense_maps, times(each.count, dense));
    std::size_t factored = plus(statistics, times(count(n_query), pattern_bytes(each.dims)));
    if (each.dims.attends()) {
      // A rotated query or key that is recorded anyway is the very tensor the factored map refers to.
      if (!has(SiteKind::rot_q))
        factored = plus(factored, floats(count(n_query), count(each.dims.heads), count(each.dims.d_head)));
      if (!has(SiteKind::rot_k) || n_key != n_query)
        factored = plus(factored, floats(count(n_key), count(each.dims.kv_heads), count(each.dims.d_head)));
    }
    costs.factored_maps = plus(costs.factored_maps, times(each.count, factored));
  }

  for (const SiteKind kind : spec.sites) {
    if (kind == SiteKind::pattern || kind == SiteKind::logits) continue;  // they are the maps, and the logits below
    if (!info(kind).per_layer) costs.sites = plus(costs.sites, site_bytes(kind, dims, n_query, n_key));
    for (const Alike& each : layers)
      if (info(kind).per_layer && has_site(dims, {kind, each.layer}))
        costs.sites = plus(costs.sites, times(each.count, site_bytes(kind, each.dims, n_query, n_key)));
  }
  const bool all = spec.all_logits || has(SiteKind::logits);
  costs.logits = floats(all ? count(n_query) : 1, count(dims.vocab));
  return costs;
}

std::string summarize(const CapturePlan& plan, const Costs& costs, std::size_t maps, std::size_t site_kinds) {
  std::vector<std::string> parts;
  if (plan.maps == MapStorage::dense)
    parts.push_back(fmt::format("{} map{} dense ({})", maps, maps == 1 ? "" : "s", megabytes(costs.dense_maps)));
  else if (plan.maps == MapStorage::factored)
    parts.push_back(fmt::format("{} map{} factored ({}; dense would take {})", maps, maps == 1 ? "" : "s",
                                megabytes(costs.factored_maps), megabytes(costs.dense_maps)));
  else
    parts.emplace_back("no maps");
  if (site_kinds > 0)
    parts.push_back(
        fmt::format("{} kind{} of site {}", site_kinds, site_kinds == 1 ? "" : "s", megabytes(costs.sites)));
  parts.push_back("logits " + megabytes(costs.logits));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

bool has_site(const ModelDims& dims, Site site) {
  if (site.layer < 0) return true;
  if (site.kind == SiteKind::layer_input && dims.d_layer == 0) return false;
  if ((site.kind == SiteKind::resid_late || site.kind == SiteKind::layer_out) && !dims.adds_behind(site.layer))
    return false;
  if (site.kind == SiteKind::resid_unscaled && !dims.stream_scales) return false;
  if (of_mlp(site.kind) && !dims.has_mlp(site.layer)) return false;
  if (!dims.normed_behind.empty()) {
    const bool behind = dims.normed_behind[static_cast<std::size_t>(site.layer)];
    if (site.kind == SiteKind::ln1_normalized || site.kind == SiteKind::ln2_normalized) return !behind;
    if (site.kind == SiteKind::attn_unnormed || site.kind == SiteKind::mlp_unnormed) return behind;
  }
  if (site.kind == SiteKind::mixer_beta && dims.state_kind != StateKind::delta) return false;
  if ((site.kind == SiteKind::mixer_gate || site.kind == SiteKind::mixer_delta) &&
      dims.state_kind == StateKind::convolution)
    return false;
  return dims.attends(site.layer) ? !of_mixer(site.kind) : !of_attention(site.kind);
}

std::size_t site_bytes(SiteKind kind, const ModelDims& dims, int n_query, int n_key) {
  const std::size_t n = count(n_query);
  switch (kind) {
    case SiteKind::q:
    case SiteKind::q_normed:
    case SiteKind::rot_q:
      return floats(n, count(dims.heads), count(dims.d_head));
    case SiteKind::attn_gate:
    case SiteKind::z:
    case SiteKind::z_gated:
      return floats(n, count(dims.heads), count(dims.value_width()));
    case SiteKind::v_unnormed:
    case SiteKind::v:
      return floats(n, count(dims.kv_heads), count(dims.value_width()));
    case SiteKind::mixer_gated:
      return floats(n, count(dims.heads), count(dims.d_head));
    case SiteKind::mixer_gate:
    case SiteKind::mixer_x:
      return floats(n, count(dims.d_inner));
    case SiteKind::mixer_delta:
    case SiteKind::mixer_beta:
      return floats(n, count(dims.lanes));
    case SiteKind::mixer_b:
    case SiteKind::mixer_c:
      return floats(n, count(dims.state_groups), count(dims.d_state));
    case SiteKind::q_latent:
      return floats(n, count(dims.q_latent));
    case SiteKind::kv_latent:
      return floats(n, count(dims.kv_latent));
    case SiteKind::k:
    case SiteKind::k_normed:
    case SiteKind::rot_k:
      return floats(n, count(dims.kv_heads), count(dims.d_head));
    case SiteKind::attn_scores:
    case SiteKind::pattern:
      return floats(count(dims.heads), n, count(n_key));
    case SiteKind::result:
      return floats(n, count(dims.heads), count(dims.d_model));
    case SiteKind::router_logits:
    case SiteKind::router_weights:
      return floats(n, count(dims.experts));
    case SiteKind::mlp_pre:
    case SiteKind::mlp_pre_linear:
    case SiteKind::mlp_post:
      return floats(n, count(dims.d_mlp));
    case SiteKind::layer_input:
      return floats(n, count(dims.d_layer));
    case SiteKind::logits:
      return floats(n, count(dims.vocab));
    case SiteKind::embed:
    case SiteKind::pos_embed:
    case SiteKind::segment_embed:
      return floats(n, count(dims.embed_width()));
    case SiteKind::final_normalized:
      return floats(n, count(dims.out_width()));
    case SiteKind::resid_pre:
    case SiteKind::ln1_normalized:
    case SiteKind::attn_unnormed:
    case SiteKind::attn_out:
    case SiteKind::resid_mid:
    case SiteKind::ln2_normalized:
    case SiteKind::mlp_unnormed:
    case SiteKind::mlp_out:
    case SiteKind::resid_late:
    case SiteKind::layer_out:
    case SiteKind::resid_unscaled:
    case SiteKind::resid_post:
      return floats(n, count(dims.d_model));
  }
  return 0;
}

CapturePlan plan_capture(const CaptureSpec& spec, const ModelDims& dims, int n_query, int n_key) {
  for (const int layer : spec.layers)
    if (layer < 0 || layer >= dims.layers)
      throw Error("capture: layers", fmt::format("layers from 0 to {}", dims.layers - 1), std::to_string(layer));
  const std::vector<Alike> layers = alike_layers(spec, dims);
  const Costs costs = costs_of(spec, dims, layers, n_query, n_key);
  const std::size_t rest = plus(costs.sites, costs.logits);

  CapturePlan plan;
  plan.maps = spec.sites.count(SiteKind::pattern) > 0 ? MapStorage::dense : spec.maps;
  if (plan.maps == MapStorage::automatic) {
    // Of layers with a state dense maps go on with their text (core/run/known_rows.h), and others are slow to read.
    const std::size_t room = dims.any_state_space() ? spec.byte_budget : spec.byte_budget / 2;
    const bool small = costs.dense_maps <= room && plus(costs.dense_maps, rest) <= spec.byte_budget;
    // Short texts: a map may be smaller than the factors it is made of.
    plan.maps = small || costs.dense_maps <= costs.factored_maps ? MapStorage::dense : MapStorage::factored;
  }
  const std::size_t map_bytes = plan.maps == MapStorage::dense      ? costs.dense_maps
                                : plan.maps == MapStorage::factored ? costs.factored_maps
                                                                    : 0;
  plan.bytes = plus(map_bytes, rest);
  std::size_t site_kinds = 0;
  for (const SiteKind kind : spec.sites) site_kinds += kind != SiteKind::pattern && kind != SiteKind::logits;
  std::size_t maps = 0;
  for (const Alike& each : layers) maps = plus(maps, times(each.count, count(each.dims.heads)));
  plan.summary = summarize(plan, costs, maps, site_kinds);
  if (plan.bytes > spec.byte_budget) {
    std::string hint = "record fewer sites or layers, cut the text, or raise the budget";
    if (plan.maps == MapStorage::dense && plus(costs.factored_maps, rest) <= spec.byte_budget)
      hint = "factored maps would need " + megabytes(plus(costs.factored_maps, rest)) + " in all";
    else if (spec.all_logits && costs.logits > spec.byte_budget / 2)
      hint = "keep the logits of the last position only, or raise the budget";
    throw Error("capture budget", "at most " + megabytes(spec.byte_budget),
                "a need of " + megabytes(plan.bytes) + ": " + plan.summary, hint);
  }
  return plan;
}

}  // namespace headscope
