// headscope-cli mask: what a mask shows, what it saves, and (with a model and a text) what it costs.
// headscope-cli cache: what keys and values of a text take, for the open model and for published ones.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "app/cli/output.h"
#include "app/cli/sweep_run.h"
#include "app/cli/table_text.h"
#include "app/render/sharing_pictures.h"
#include "core/analysis/mask_sweep.h"
#include "core/attention/key_sharing.h"
#include "core/attention/mask_facts.h"
#include "core/attention/masks.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/edits/mask_edit.h"
#include "core/metrics/next_token.h"
#include "core/metrics/next_token_change.h"
#include "core/model/kv_cache.h"
#include "core/model/published_caches.h"
#include "core/trace/layer_kinds.h"
#include "viz/scene/framed.h"
#include "viz/scene/matrix_map.h"

namespace headscope::cli {

namespace {

struct MaskOptions {
  Input input;
  PictureOutput picture;
  Output output;
  std::string spec, head = "0.0";
  bool table = false;
  int tokens = 16;
};

HeadId head_of(const MaskOptions& options) {
  const auto head = parse_head_id(options.head);
  if (!head) throw UsageError("--head: LAYER.HEAD, not \"" + options.head + "\"");
  return *head;
}

Report masks_report() {
  Report out;
  auto& rows = out.table("", {"mask", "query i sees key j where", "source"});
  for (const MaskForm& each : mask_forms()) rows.add({each.form, each.predicate, each.source});
  out.line("joined by: A & B, A | B, not A, ( )");
  return out;
}

void draw(Console& console, const AttentionRule& rule, Index n) {
  const auto hidden = hidden_cells(rule, n);
  for (Index i = 0; i < n; ++i) {
    std::string line;
    for (Index j = 0; j < n; ++j) line += nth(hidden, i * n + j) ? " ·" : " #";
    console.print_line(line);
  }
}

/// Throws UsageError on words that are no mask.
std::shared_ptr<const AttentionRule> rule_of(const std::string& spec) {
  return understood([&] { return parse_mask(spec); });
}

/// All masks of the catalogue at the length of the text, and `spec` before them; with a model what each costs it.
Report table_report(Console& console, const MaskOptions& options) {
  Report out;
  const bool in_model = !options.input.model.empty();
  std::vector<Column> columns{"mask", Column("kept", "cells kept", "{:.1f}", "%"),
                              Column("causal", "of the causal", "{:.1f}", "%"), Column("kept_keys", "keys kept")};
  const auto masks = [&](Index tokens) {
    std::vector<std::string> all = masks_for(tokens);
    if (!options.spec.empty()) all.insert(all.begin(), options.spec);
    return all;
  };
  MaskCosts known;
  if (in_model) {
    for (const Column& each :
         {Column("flop", "score work", "{:.3g}", "FLOP"), Column("cache", "KV cache", "{:.3g}", "B"),
          Column("loss", "loss", "{:.4f}", "nats"), Column("kl", "KL of the answer", "{:.4f}", "nats")})
      columns.push_back(each);
    const RunRequest request = options.input.request();
    const LoadedModel loaded = load_model(request.model, console.backend());
    const auto tokens = static_cast<Index>(tokenize(loaded, request, console.stop()).size());
    const HeadId head = head_of(options);
    MaskSweep sweep(loaded, {request, head, masks(tokens)});
    if (!go_through(console, sweep, "masks")) throw Cancelled();
    known = *sweep.result();
    out.line(fmt::format("{} tokens; {}; lsh and reformer hash the queries and keys of head {}", tokens,
                         std::isnan(known.before.loss) ? "nothing that a loss could be told of"
                                                       : fmt::format("loss as it is {:.4f} nats", known.before.loss),
                         to_string(head)));
  } else {
    for (const std::string& each : masks(options.tokens))
      known.entries.push_back({each, mask_facts(*parse_mask(each), options.tokens), hashes_vectors(each), {}});
    out.line(fmt::format("{} tokens; with a model and a text also work, cache and loss, and what lsh and reformer keep",
                         options.tokens));
  }
  auto& rows = out.table("masks", std::move(columns));
  for (const MaskCosts::Entry& each : known.entries) {
    const bool counted = in_model || !each.hashed;  // without queries and keys nothing is hashed
    std::vector<Cell> row{each.mask};
    row.push_back(counted ? Cell(100 * each.facts.share()) : Cell());
    row.push_back(counted ? Cell(100 * each.facts.causal_share()) : Cell());
    row.push_back(counted ? Cell(each.facts.kept_keys) : Cell());
    if (in_model)
      for (const double value : {known.work(each), known.cache_bytes(each), each.outcome.loss, each.outcome.kl})
        row.emplace_back(value);
    rows.add(std::move(row));
  }
  return out;
}

void mask(Console& console, const MaskOptions& options) {
  if (options.table) {
    if (options.picture.wanted()) throw UsageError("-o draws one mask; --table has no picture");
    if (!options.spec.empty()) rule_of(options.spec);
    return console.print(table_report(console, options).printed(options.output.form()));
  }
  if (options.spec.empty()) throw UsageError("which mask? mask list names them; --table compares them");
  if (options.output.for_scripts()) throw UsageError("--json and --csv are for --table");
  if (options.spec == "list") return console.print(masks_report().printed(Form::text));
  options.picture.check();
  std::shared_ptr<const AttentionRule> rule = rule_of(options.spec);
  const std::string& model = options.input.model;
  // A mask that hashes queries and keys is what a head's own make of it.
  const bool hashes = hashes_vectors(options.spec);
  bool state = false, keeps = true;
  if (!model.empty()) {
    const ModelConfig config = load_config(options.input.model_folder());
    state = hashes && !config.dims.attends(std::clamp(head_of(options).layer, 0, config.dims.layers - 1));
    keeps = MaskSavings::of(config).keeps_keys;
  }
  if (hashes && model.empty())
    console.print_line(
        "A mask that hashes needs a head's queries and keys: name a model and a text. Without, causal.\n");
  std::optional<Opened> before;
  RunRequest plain;
  Index tokens = options.tokens;
  if (!model.empty()) {
    plain = options.input.request();
    plain.capture.maps = MapStorage::none;
    before = run_request(console, load_model(plain.model, console.backend()), plain);
    if (hashes && !state) {
      const HeadId head = head_of(options);
      tokens = static_cast<Index>(before->trace->tokens.size());
      rule = mask_on_text(options.spec, before->loaded, plain, head, {console.backend(), nullptr, console.stop()});
      console.print_line(fmt::format("of layer {} head {}, its queries and keys on the {} tokens of the text\n",
                                     head.layer, head.head, tokens));
    }
  }
  const MaskFacts facts = facts_on_text(options.spec, *rule, tokens);
  if (tokens <= 64) draw(console, *rule, tokens);
  console.print_line(fmt::format("\n{} over {} tokens: {} cells, {:.1f} % of all, {:.1f} % of the causal ones",
                                 rule->describe(), facts.tokens, facts.cells, 100 * facts.share(),
                                 100 * facts.causal_share()));
  console.print_line(
      fmt::format("{}{} cells look ahead; {} rows see no key{}",
                  !keeps ? "" : fmt::format("a cache keeps {} of {} keys; ", facts.kept_keys, facts.tokens),
                  facts.ahead, facts.empty_rows.size(), facts.empty_rows.empty() ? "" : " and become zero"));
  if (before) {
    RunRequest changed = plain;
    changed.edits.push_back({{}, SetMask{options.spec}});
    const Opened after = run_request(console, before->loaded, changed);
    const double lost = mean_loss(*before->trace);
    const char* const asked = prediction_words(before->trace->model.objective).token;
    console.print_line(std::isnan(lost)
                           ? fmt::format("no loss: there is no {} to be told", asked)
                           : fmt::format("loss {:.4f} → {:.4f} nats with it in every head; KL of the {} {:.4f} nats",
                                         lost, mean_loss(*after.trace), asked,
                                         next_token_change(*before->trace, *after.trace, 1).kl));
  }
  options.picture.write(
      console,
      [&](const Style& style) {
        MatrixMap map = mask_map(facts.tokens, hidden_cells(*rule, facts.tokens));
        map.width = map.height = 560;
        return framed(matrix_map_scene(map, style), {rule->describe(), {}, "", {}}, style,
                      fmt::format("{:.1f} % of the cells", 100 * facts.share()));
      },
      &options.input);
}

struct CacheOptions {
  PictureOutput picture;
  std::string model;
  int tokens = 8192, bytes = 2;
};

Report cache_report(const CacheOptions& options) {
  Report out;
  auto& rows = out.table("", {"model", "sharing", "layers", for_people("key_heads"), "d_head", for_people("per_token"),
                              for_people("cache"), "source"});
  const auto u = [](auto v) { return static_cast<std::uint64_t>(v); };
  if (!options.model.empty()) {
    Input input;
    input.model = options.model;
    const ModelConfig config = load_config(input.model_folder());
    if (!config.dims.any_attends())
      throw Error("cache", "a model with keys and values", config.name,
                  "it keeps a state, as large for a text of any length: inspect tells how large");
    const ModelDims& d = config.dims;
    const auto bytes = [&](int tokens) { return byte_size(needed_in_all(config) * u(tokens) * u(options.bytes)); };
    const auto sharing = [&](int kv_heads) { return kv_heads == d.heads ? "MHA" : kv_heads == 1 ? "MQA" : "GQA"; };
    // Layers that keep keys of their own, by their widths: where there are several, a row for each.
    std::vector<std::pair<LayerWidths, int>> kinds;
    for (int layer = 0; layer < d.layers; ++layer) {
      if (!d.attends(layer) || !config.own_keys(layer)) continue;
      const LayerWidths own = d.widths_of(layer);
      const auto alike = [&](const auto& kind) {
        return kind.first.kv_heads == own.kv_heads && kind.first.d_head == own.d_head;
      };
      const auto found = std::ranges::find_if(kinds, alike);
      found == kinds.end() ? void(kinds.emplace_back(own, 1)) : void(++found->second);
    }
    if (kinds.size() == 1 || config.latent())
      rows.add({config.name, config.latent() ? "MLA" : sharing(kinds[0].first.kv_heads), kinds[0].second,
                config.latent() ? fmt::format("{}+{}", d.kv_latent, config.rotary.width)
                                : std::to_string(kinds[0].first.kv_heads),
                kinds[0].first.d_head, bytes(1), bytes(options.tokens), "its config.json"});
    for (std::size_t i = 0; kinds.size() > 1 && !config.latent() && i < kinds.size(); ++i) {
      const auto& [own, count] = kinds[i];
      const std::uint64_t each = 2 * u(count) * u(own.kv_heads) * u(own.d_head) * u(options.bytes);
      rows.add({fmt::format("{}, {} of {} layers", config.name, count, d.layers), sharing(own.kv_heads), count,
                std::to_string(own.kv_heads), own.d_head, byte_size(each), byte_size(each * u(options.tokens)),
                "its config.json"});
    }
  }
  for (const PublishedCache& each : published_caches())
    rows.add({each.model, each.sharing, each.layers,
              each.latent > 0 ? fmt::format("{}+{}", each.latent, each.rotary) : std::to_string(each.kv_heads),
              each.d_head, byte_size(each.bytes(1, u(options.bytes))),
              byte_size(each.bytes(u(options.tokens), u(options.bytes))), each.source});
  out.line(
      fmt::format("{} tokens at {} bytes per number: 2 · layers · key heads · d_head · tokens · bytes; MLA: layers · "
                  "(latent + rotary) · tokens · bytes",
                  options.tokens, options.bytes));
  std::optional<ModelConfig> own;
  if (!options.model.empty()) {
    Input input;
    input.model = options.model;
    own = load_config(input.model_folder());
  }
  out.picture = [own](const Style& style) { return sharing_ways_scene(own ? &*own : nullptr, 1000, style); };
  return out;
}

}  // namespace

void add_mask(Command& app, Console& console) {
  auto options = std::make_shared<MaskOptions>();
  Command command = app.add_subcommand("mask", "What a mask shows and saves; with a model and a text, what it costs");
  command.add_option("spec", options->spec, "The mask, such as \"window 8 | sink 1 window 1\"; list names all")
      .type_name("MASK");
  command.add_flag("--table", options->table, "All masks side by side; with a model and a text their loss too");
  command.add_option("--head", options->head, "Whose queries and keys lsh and reformer hash, as LAYER.HEAD")
      .show_default();
  options->output.add_to(command, "With --table: JSON", "With --table: CSV");
  options->input.add_to(command, {.part = false});
  command.add_option("-n,--tokens", options->tokens, "Tokens of the picture and the numbers")
      .check(range(1, 4096))
      .show_default();
  options->picture.add_to(command, "A picture of it");
  command.does([options, &console] { mask(console, *options); });

  auto sizes = std::make_shared<CacheOptions>();
  Command second = app.add_subcommand("cache", "What keys and values take: the open model, and published ones");
  second.add_option("-m,--model", sizes->model, "A model folder, or the name of a bundled one").type_name("DIR");
  second.add_option("--tokens", sizes->tokens, "Tokens of the text").check(range(1, 1 << 30)).show_default();
  second.add_option("--bytes", sizes->bytes, "Per number: 4, 2 or 1").check(one_of({1, 2, 4})).show_default();
  sizes->picture.add_to(second, "A picture of query heads, the key heads they share, and the cache that is left");
  second.does([sizes, &console] {
    sizes->picture.check();
    const Report report = cache_report(*sizes);
    sizes->picture.write(console, report.picture);
    if (!sizes->picture.wanted()) console.print(report.printed(Form::text));
  });
}

}  // namespace headscope::cli
