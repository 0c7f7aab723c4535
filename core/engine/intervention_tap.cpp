#include "core/engine/intervention_tap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <span>
#include <utility>

#include "core/attention/masks.h"
#include "core/attention/mechanism.h"
#include "core/base/error.h"
#include "core/base/overloaded.h"
#include "core/engine/edit_rows.h"
#include "core/model/weights.h"
#include "core/trace/token_alignment.h"

namespace headscope {
namespace {

/// The heads (or key heads) of a (position, head, d_head) tensor that belong to head `head` of the model; all when −1.
std::pair<Index, Index> heads_of(const Tensor& value, std::optional<int> head, int model_heads) {
  if (!head) return {0, value.dim(1)};
  const Index group = model_heads / value.dim(1), own = *head / group;
  return {own, own + 1};
}

SiteKind site_of(SwitchOff::Part part) {
  switch (part) {
    case SwitchOff::Part::attention:
      return SiteKind::attn_out;
    case SwitchOff::Part::mlp:
      return SiteKind::mlp_out;
    case SwitchOff::Part::ln1:
      return SiteKind::ln1_normalized;
    case SwitchOff::Part::ln2:
      return SiteKind::ln2_normalized;
  }
  return SiteKind::mlp_out;
}

void need_model(const EditScene& scene, const std::string& where) {
  if (!scene.model)
    throw Error(where, "a pass of the model itself, whose positions and weights the edit reads", "none");
}

/// Between two matrices that are taken apart or put together.
bool go_on(const EditScene& scene) {
  if (scene.stop.stop_requested()) throw Cancelled();
  return true;
}

}  // namespace

std::vector<int> align_positions(const TextPairing& pairing, const std::vector<std::int32_t>& ids,
                                 const std::vector<std::int32_t>& other) {
  using By = TextPairing::By;
  if (pairing.by == By::tokens) return align_tokens(ids, other);
  const int n = static_cast<int>(ids.size()), m = static_cast<int>(other.size());
  std::vector<int> result;
  if (pairing.by == By::hand) {
    result.assign(ids.size(), -1);
    for (const auto& [here, there] : pairing.pairs) {
      if (here < 0 || here >= n || there < 0 || there >= m)
        throw Error("aligned positions", fmt::format("pairs inside texts of {} and {} tokens", n, m),
                    fmt::format("{}:{}", here, there));
      result[static_cast<std::size_t>(here)] = there;
    }
    return result;
  }
  for (int i = 0; i < n; ++i) {
    const int j = pairing.by == By::start ? i : i + m - n;
    result.push_back(j >= 0 && j < m ? j : -1);
  }
  return result;
}

std::vector<SourceNeed> sources_of(const std::vector<Intervention>& edits) {
  std::vector<SourceNeed> needs;
  const auto need = [&](const std::string& text) -> CaptureSpec& {
    const auto found = std::ranges::find(needs, text, &SourceNeed::text);
    if (found != needs.end()) return found->capture;
    needs.push_back({text, {}});
    needs.back().capture.maps = MapStorage::none;
    needs.back().capture.all_logits = false;
    return needs.back().capture;
  };
  for (const Intervention& edit : edits) {
    if (!edit.enabled) continue;
    if (const auto* freeze = std::get_if<FreezePattern>(&edit.action)) need(freeze->text).maps = MapStorage::automatic;
    if (const auto* patch = std::get_if<Patch>(&edit.action)) need(patch->text).sites.insert(patch->site);
    if (const auto* ablate = std::get_if<Ablate>(&edit.action))
      for (const std::string& text : ablate->from) need(text).sites.insert(SiteKind::z);
  }
  return needs;
}

InterventionTap::InterventionTap(const std::vector<Intervention>& edits, const EditScene& scene) : scene_(scene) {
  const int n = static_cast<int>(scene.ids.size());
  check_targets(edits, scene.dims, n);
  for (const Intervention& edit : edits) {
    if (!edit.enabled) continue;
    const std::string where = "edit " + describe(edit);
    check(edit, where);
    const PositionRange at = edit.target.positions.value_or(PositionRange{});
    Step step{edit.target, edit.action, from_end(at.first, n), from_end(at.last, n)};
    const auto source = [&](const std::string& text) {
      const auto found = scene.sources.find(text);
      assert(found != scene.sources.end());
      return found->second;
    };
    std::visit(Overloaded{[&](const SetMask& action) {
                            step.mask = parse_mask(action.spec, where);
                            step.hashes = hashes_vectors(action.spec) && scene.model;
                          },
                          [&](const FreezePattern& action) {
                            step.source = source(action.text);
                            step.partner = align_positions(action.align, scene.ids, step.source->ids());
                          },
                          [&](const Patch& action) {
                            step.source = source(action.text);
                            step.partner = align_positions(action.align, scene.ids, step.source->ids());
                          },
                          [&](const Ablate& action) {
                            for (const std::string& text : action.from) step.references.push_back(source(text).get());
                          },
                          [&](const SetPositions& action) {
                            need_model(scene, where);
                            check_positions(action, edit.target, *scene.model, n, where);
                            rotates_ |= action.replaces() || action.method == SetPositions::Method::shift;
                          },
                          [&](const PostNorm&) {
                            need_model(scene, where);
                            assert(scene.backend);
                            if (norms_.empty())
                              for (const BlockWeights& block : scene.model->weights().blocks)
                                norms_.emplace_back(block.ln1, block.ln2);
                          },
                          [&](const ShareKeys& action) { check_groups(action.groups, scene.dims, where); },
                          [&](const LatentKeys& action) {
                            need_model(scene, where);
                            for (int layer = 0; layer < scene.dims.layers; ++layer)
                              if (edit.target.layer.value_or(layer) == layer && go_on(scene))
                                step.latent.emplace(layer, latent_projector(*scene.model, layer, action.rank, where));
                          },
                          [&](const ScaleSingular& action) {
                            need_model(scene, where);
                            for (int layer = 0; layer < scene.dims.layers; ++layer)
                              if (edit.target.layer.value_or(layer) == layer && go_on(scene))
                                if (auto scaled = scaled_projection(*scene.model, layer, action, where))
                                  step.scaled.emplace(layer, std::move(*scaled));
                          },
                          [&](const SwapMechanism& action) {
                            step.swap = std::make_shared<const MechanismChoice>(parse_mechanism(action.spec, where));
                          },
                          [](const auto&) {}},
               step.action);
    step.after_softmax = std::ranges::any_of(steps_, [&](const Step& earlier) { return hides_scores(earlier, step); });
    steps_.push_back(std::move(step));
  }
  for (const Step& step : steps_) placed_.push_back({&step.target, &step.action, step.first, step.last});
}

bool InterventionTap::hides_scores(const Step& earlier, const Step& weight) const {
  const auto* set = std::get_if<SetWeight>(&weight.action);
  const auto* drop = std::get_if<DropFirst>(&earlier.action);
  if (!set || !(std::holds_alternative<FreezePattern>(earlier.action) ||
                std::holds_alternative<SwapMechanism>(earlier.action) || (drop && !drop->renormalize)))
    return false;
  const auto meet = [](std::optional<int> a, std::optional<int> b) { return !a || !b || *a == *b; };
  const int query = from_end(set->query, static_cast<int>(scene_.ids.size()));
  return meet(earlier.target.layer, weight.target.layer) && meet(earlier.target.head, weight.target.head) &&
         query >= earlier.first && query <= earlier.last;
}

bool InterventionTap::meeting(SiteKind site) const {
  const bool rotary = scene_.model && scene_.model->config().position == PositionKind::rotary;
  return site == (rotary ? SiteKind::rot_q : SiteKind::q) || site == (rotary ? SiteKind::rot_k : SiteKind::k);
}

bool InterventionTap::acts_at(const Step& step, Site site) const {
  if (step.target.layer && *step.target.layer != site.layer) return false;
  return std::visit(
      Overloaded{[&](const SetWeight&) {
                   return site.kind == (step.after_softmax ? SiteKind::pattern : SiteKind::attn_scores);
                 },
                 [&](const DropFirst& a) { return !a.renormalize && site.kind == SiteKind::pattern; },
                 [&](const FreezePattern&) { return site.kind == SiteKind::pattern; },
                 [&](const Ablate&) { return site.kind == SiteKind::z; },
                 [&](const Patch& a) { return site.kind == a.site; },
                 [&](const SwitchOff& a) { return site.kind == site_of(a.part); },
                 [&](const PostNorm&) {
                   return site.kind == SiteKind::ln1_normalized || site.kind == SiteKind::resid_mid ||
                          site.kind == SiteKind::ln2_normalized || site.kind == SiteKind::resid_post;
                 },
                 [&](const SetPositions& a) {
                   const PositionsHeld alone{a.replaces() ? &a : nullptr, a.shift};
                   return positions_act_at(alone, scene_.model->config().position, site.kind);
                 },
                 [&](const ShareKeys&) { return site.kind == SiteKind::k || site.kind == SiteKind::v; },
                 [&](const LatentKeys&) { return site.kind == SiteKind::k || site.kind == SiteKind::v; },
                 [&](const ScaleSingular& a) {
                   if (!step.scaled.contains(site.layer)) return false;
                   // Where heads add apart, the block's sum is made of what they add.
                   if (a.matrix == WeightMatrix::o && scene_.heads_apart) return site.kind == SiteKind::result;
                   return site.kind == output_site(a.matrix, scene_.model->config());
                 },
                 [&](const SwapMechanism&) { return site.kind == SiteKind::pattern || site.kind == SiteKind::z; },
                 [](const auto&) { return false; }},
      step.action);
}

bool InterventionTap::multiplies(const Step& step, Site site) const {
  if (step.target.layer.value_or(site.layer) != site.layer) return false;
  if (const auto* scale = std::get_if<ScaleSingular>(&step.action))
    return step.scaled.contains(site.layer) && site.kind == input_site(scale->matrix);
  return std::holds_alternative<LatentKeys>(step.action) && site.kind == SiteKind::ln1_normalized;
}

bool InterventionTap::swaps(int layer) const {
  return std::ranges::any_of(steps_, [&](const Step& step) {
    return std::holds_alternative<SwapMechanism>(step.action) && (!step.target.layer || *step.target.layer == layer);
  });
}

bool InterventionTap::wants(Site site) const {
  const bool projection = site.kind == SiteKind::q || site.kind == SiteKind::k || site.kind == SiteKind::v ||
                          site.kind == SiteKind::rot_q || site.kind == SiteKind::rot_k;
  if (projection && swaps(site.layer)) return true;
  for (const Step& step : steps_) {
    if (acts_at(step, site)) return true;
    // A norm that is switched off passes on what stood before it.
    if (const auto* off = std::get_if<SwitchOff>(&step.action);
        off && (!step.target.layer || *step.target.layer == site.layer) &&
        ((off->part == SwitchOff::Part::ln1 && site.kind == SiteKind::resid_pre) ||
         (off->part == SwitchOff::Part::ln2 && site.kind == SiteKind::resid_mid)))
      return true;
    if (multiplies(step, site)) return true;
    if (std::holds_alternative<PostNorm>(step.action) && site.kind == SiteKind::resid_pre &&
        step.target.layer.value_or(site.layer) == site.layer)
      return true;
  }
  for (const Step& step : steps_)
    if (step.hashes && meeting(site.kind) && step.target.layer.value_or(site.layer) == site.layer) return true;
  if (rotates_ && (site.kind == SiteKind::q || site.kind == SiteKind::k)) return true;
  return false;
}

Tensor InterventionTap::at(Site site, const Tensor& value) {
  Tensor edited;
  bool own = false;                  // nobody else has `edited`: it may be written to
  std::vector<std::uint8_t> normed;  // rows whose norm was moved: of several edits that move it one does
  if (site.kind == SiteKind::z && !outputs_.empty()) {
    edited = value.copy();
    own = true;
    outputs_.put(edited);
  }
  const auto write_to = [&]() -> Tensor& {
    if (!own) edited = edited.defined() ? edited.copy() : value.copy();
    own = true;
    return edited;
  };
  const bool placed = std::ranges::any_of(steps_, [&](const Step& step) {
    return std::holds_alternative<SetPositions>(step.action) && acts_at(step, site);
  });
  // Queries and keys of a model without rotation are turned when every other edit has made them; elsewhere positions
  // are what other edits find.
  const bool turned_last = site.kind == SiteKind::q || site.kind == SiteKind::k;
  if (placed && !turned_last) place(site, write_to());
  // Other weights make the tensor anew, so that they come before what is done to it.
  const auto makes_anew = [](const Step& step) {
    return std::holds_alternative<ScaleSingular>(step.action) || std::holds_alternative<LatentKeys>(step.action);
  };
  for (const Step& step : steps_)
    if (makes_anew(step) && acts_at(step, site)) act(step, site, write_to());
  for (const Step& step : steps_) {
    if (std::holds_alternative<SetPositions>(step.action) || makes_anew(step) || !acts_at(step, site)) continue;
    if (std::holds_alternative<PostNorm>(step.action)) {
      edited = post_norm(step, site, edited.defined() ? edited : value, normed);
      own = false;
      continue;
    }
    act(step, site, write_to());
    // First tokens that were dropped stay so when a row's weights are written anew.
    if (std::holds_alternative<SwapMechanism>(step.action) || std::holds_alternative<FreezePattern>(step.action))
      for (const Step& earlier : std::span(steps_.data(), static_cast<std::size_t>(&step - steps_.data())))
        if (std::holds_alternative<DropFirst>(earlier.action) && acts_at(earlier, site)) act(earlier, site, edited);
  }
  if (placed && turned_last) place(site, write_to());
  const Tensor& result = edited.defined() ? edited : value;
  if (site.kind == SiteKind::resid_pre || site.kind == SiteKind::resid_mid) norm_input_ = result;
  if (std::ranges::any_of(steps_, [&](const Step& step) { return multiplies(step, site); }))
    inputs_[site.kind] = result;
  if (meeting(site.kind)) (site.kind == SiteKind::q || site.kind == SiteKind::rot_q ? meeting_.q : meeting_.k) = result;
  if (site.kind == SiteKind::q) before_rotation_.q = result;
  if (site.kind == SiteKind::k) before_rotation_.k = result;
  if (site.kind == SiteKind::q || site.kind == SiteKind::rot_q) q_ = result;
  if (site.kind == SiteKind::k || site.kind == SiteKind::rot_k) k_ = result;
  if (site.kind == SiteKind::v) v_ = result;
  return result;
}

Tensor InterventionTap::post_norm(const Step& step, Site site, const Tensor& value, std::vector<std::uint8_t>& done) {
  const auto& [first_norm, second_norm] = norms_[static_cast<std::size_t>(site.layer)];
  const bool behind_attention = site.kind == SiteKind::resid_mid || scene_.dims.d_mlp == 0;
  const Tensor moved =
      site.kind == SiteKind::ln1_normalized || site.kind == SiteKind::ln2_normalized
          ? norm_input_
          : normalized(scene_.model->config(), behind_attention ? first_norm : second_norm, *scene_.backend, value);
  const Index first = std::max(step.first, scene_.first_row) - scene_.first_row, last = step.last - scene_.first_row;
  const bool whole = done.empty() && first == 0 && last == value.dim(0) - 1;
  done.resize(static_cast<std::size_t>(value.dim(0)));
  const bool behind = site.kind == SiteKind::resid_mid || site.kind == SiteKind::resid_post;
  bool all = whole;
  for (const Step& off : steps_)  // a norm that is switched off does not move either
    if (const auto* part = std::get_if<SwitchOff>(&off.action);
        behind && part && part->part == (behind_attention ? SwitchOff::Part::ln1 : SwitchOff::Part::ln2) &&
        off.target.layer.value_or(site.layer) == site.layer)
      for (int i = std::max(off.first, scene_.first_row); i <= off.last; ++i) {
        done[static_cast<std::size_t>(i - scene_.first_row)] = 1;
        all = false;
      }
  Tensor rows = all ? moved : value.copy();  // all: the tensor itself, gradients flow through it
  for (Index i = first; i <= last; ++i) {
    if (std::exchange(done[static_cast<std::size_t>(i)], 1) || all) continue;
    for (Index j = 0; j < rows.dim(1); ++j) rows.ref(i, j) = moved.at(i, j);
  }
  return rows;
}

void InterventionTap::act(const Step& step, Site site, Tensor& value) {
  // Positions reached; their rows in `value` begin with the pass's first.
  const int first = std::max(step.first, scene_.first_row), last = step.last;
  const auto row = [&](Index position) { return position - scene_.first_row; };
  const auto rows_of_heads = [&](Index heads, auto body) {
    for (Index head = 0; head < heads; ++head)
      if (!step.target.head || *step.target.head == head)
        for (Index i = first; i <= last; ++i) body(head, i);
  };
  const int n = static_cast<int>(scene_.ids.size());
  std::visit(Overloaded{[&](const SetWeight& a) {  // (head, query, key)
                          const Index query = from_end(a.query, n), key = from_end(a.key, n);
                          if (query < first || query > last) return;
                          for (Index head = 0; head < value.dim(0); ++head) {
                            if (step.target.head && *step.target.head != head) continue;
                            const std::span<float> weights(&value.ref(head, row(query), 0),
                                                           static_cast<std::size_t>(value.dim(2)));
                            if (!step.after_softmax) {
                              set_weight(weights, key, a.weight);
                              continue;
                            }
                            set_final_weight(weights, key, a.weight);
                            outputs_.forget(head, query);
                          }
                        },
                        [&](const DropFirst& a) {
                          for (Index head = 0; head < value.dim(0); ++head) {
                            Index i = 0;
                            for (const HeldRows& part : held({site.layer, static_cast<int>(head)})) {
                              const bool here = part.of(HeldKind::drop_first) == &step - steps_.data();
                              for (; i < part.end; ++i) {
                                if (!here || i < first) continue;
                                std::fill_n(&value.ref(head, row(i), 0), std::min<Index>(a.count, value.dim(2)), 0.0f);
                                outputs_.forget(head, i);
                              }
                            }
                          }
                        },
                        [&](const FreezePattern&) {
                          rows_of_heads(value.dim(0), [&](Index head, Index i) {
                            const AttentionMap& map = step.source->map({site.layer, static_cast<int>(head)});
                            const int from = step.partner[static_cast<std::size_t>(i)];
                            if (from < 0 || from >= map.n_query()) return;
                            std::vector<float> frozen(static_cast<std::size_t>(map.n_key()));
                            map.row(from, frozen);
                            freeze_row(frozen, step.partner, i,
                                       {&value.ref(head, row(i), 0), static_cast<std::size_t>(value.dim(2))});
                            outputs_.forget(head, i);
                          });
                        },
                        [&](const Ablate& a) {
                          std::vector<Tensor> reference;
                          for (const Trace* trace : step.references) reference.push_back(trace->sites.at(site));
                          ablate(a, reference, value, heads_of(value, step.target.head, scene_.dims.heads),
                                 static_cast<int>(row(first)), static_cast<int>(row(last)));
                        },
                        [&](const Patch&) {
                          const Tensor& source = step.source->sites.at(site);
                          for (Index i = first; i <= last; ++i) {
                            const int from = step.partner[static_cast<std::size_t>(i)];
                            if (from < 0) continue;
                            if (value.rank() == 2) {
                              for (Index j = 0; j < value.dim(1); ++j) value.ref(row(i), j) = source.at(from, j);
                              continue;
                            }
                            const auto [head, end] = heads_of(value, step.target.head, scene_.dims.heads);
                            for (Index h = head; h < end; ++h)
                              for (Index j = 0; j < value.dim(2); ++j) value.ref(row(i), h, j) = source.at(from, h, j);
                          }
                        },
                        [&](const SwitchOff& a) {
                          const bool norm = a.part == SwitchOff::Part::ln1 || a.part == SwitchOff::Part::ln2;
                          for (Index i = row(first); i <= row(last); ++i)
                            for (Index j = 0; j < value.dim(1); ++j)
                              value.ref(i, j) = norm ? norm_input_.at(i, j) : 0.0f;
                        },
                        [&](const ShareKeys& a) { pool_heads(value, a.groups, row(first), row(last)); },
                        [&](const LatentKeys&) {
                          through_latent(step.latent.at(site.layer), inputs_.at(SiteKind::ln1_normalized),
                                         site.kind == SiteKind::v, static_cast<int>(row(first)),
                                         static_cast<int>(row(last)), value);
                        },
                        [&](const ScaleSingular& a) {
                          (site.kind == SiteKind::result ? multiply_heads_anew : multiply_anew)(
                              step.scaled.at(site.layer), inputs_.at(input_site(a.matrix)),
                              static_cast<int>(row(first)), static_cast<int>(row(last)), value);
                        },
                        [&](const SwapMechanism&) {
                          if (site.kind == SiteKind::pattern) swap(step, site.layer, value);
                        },
                        [](const auto&) {}},
             step.action);
}

}  // namespace headscope
