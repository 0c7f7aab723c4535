// The tools of `headscope-cli read` about what a target takes from a source.

#include <fmt/format.h>

#include "app/cli/read_report.h"
#include "app/render/reading_pictures.h"
#include "core/base/error.h"
#include "core/metrics/alignment.h"
#include "core/metrics/token_times.h"
#include "core/run/target_rules.h"
#include "viz/scene/map_cells.h"

namespace headscope::cli {

namespace {
class Alignment final : public ReadTool {
 public:
  Alignment() : ReadTool("alignment", "Which source tokens the target's stand for, read off cross-attention") {}
  void add_options(Command& command) override {
    head_.add_to(command);
    command.add_option("--threshold", threshold_, "All cells of at least this weight (default: the strongest of a row)")
        .check(range(0.0, 1.0))
        .type_name("WEIGHT");
    command
        .add_option("--truth", truth_,
                    "What is known: source-target positions, \"0-1 2-0\", with ? for - where one is possible only")
        .type_name("\"S-T …\"");
  }
  bool reads_cross() const override { return true; }
  Report read(const ReadRun& run) const override;

 private:
  AlignedPairs pairs_of(const AttentionMap& map) const {
    return threshold_ ? pairs_above(map, *threshold_) : strongest_pairs(map);
  }

  HeadOption head_;
  std::optional<double> threshold_;
  std::string truth_;
};

Report Alignment::read(const ReadRun& run) const {
  const Trace* const cross = run.trace->part(Stack::cross);
  if (!cross)
    throw Error("read alignment", "an encoder-decoder, whose target looks at a source", run.trace->model.name,
                run.trace->model.stack == Stack::encoder ? "its encoder alone has no target: --part cross"
                                                         : "this model is of one stack");
  std::optional<KnownAlignment> known;
  if (!truth_.empty())
    known = parse_alignment(truth_, static_cast<int>(cross->tokens.size()),
                            static_cast<int>(cross->query_tokens.size()), "--truth");
  Report out;
  out.fact({"rule", "a target token stands for",
            threshold_ ? fmt::format("sources of a weight of {} or more", *threshold_)
                       : std::string("the source it looks at most")});
  if (head_.given.empty()) {
    std::vector<Column> columns{"head", "pairs"};
    if (known) columns.insert(columns.end(), {"error_rate", "precision", "recall"});
    auto& rows = out.table("rows", std::move(columns));
    for (const AttentionMap& map : cross->maps) {
      const AlignedPairs found = pairs_of(map);
      std::vector<Cell> cells{to_string(map.id()), found.size()};
      if (known) {
        const AlignmentScore score = score_alignment(found, *known);
        cells.insert(cells.end(), {score.error_rate, score.precision, score.recall});
      }
      rows.add(std::move(cells));
    }
    return out;
  }
  const AttentionMap& map = cross->map(head_.in(*cross));
  const AlignedPairs found = pairs_of(map);
  if (known) {
    const AlignmentScore score = score_alignment(found, *known);
    out.facts({{"error_rate", "alignment error rate", score.error_rate},
               {"precision", "precision", score.precision},
               {"recall", "recall", score.recall}});
  }
  auto& rows = out.table("rows", {"target", "target_token", "source", "source_token", "weight"});
  for (const auto& [source, target] : found)
    rows.add({target, cross->query_tokens[static_cast<std::size_t>(target)].label, source,
              cross->tokens[static_cast<std::size_t>(source)].label, map.weight(target, source)});
  return out;
}

class Times final : public ReadTool {
 public:
  Times() : ReadTool("times", "When each token of the target was said in the sound, by dynamic time warping") {}
  void add_options(Command& command) override { head_.add_to(command); }
  bool reads_cross() const override { return true; }
  Report read(const ReadRun& run) const override;

 private:
  HeadOption head_;
};

Report Times::read(const ReadRun& run) const {
  const Trace* const cross = run.trace->part(Stack::cross);
  const std::shared_ptr<const TargetRules>& rules = run.loaded.target;
  if (!cross || !rules)
    throw Error("read times", "a model of speech, whose target looks at a sound", run.trace->model.name);
  const std::vector<HeadId> heads = head_.given.empty()
                                        ? alignment_heads_or_upper_half(rules->alignment_heads, cross->model.dims)
                                        : std::vector{head_.in(*cross)};
  // The text begins behind the last token that steers the model, or where a request of ids alone says nothing of it.
  const Index first = first_said(*run.trace);
  if (first == static_cast<Index>(cross->query_tokens.size()))
    throw Error("read times", "a text, of which each token was said at some time", "none",
                "generate writes one; give it as --text");
  const std::vector<double> times = token_times(*cross, heads, first, rules->smoothing);
  std::string names;
  for (const HeadId head : heads) names += (names.empty() ? "" : ", ") + to_string(head);
  Report out;
  out.fact(
      {"heads", rules->alignment_heads.empty() || !head_.given.empty() ? "heads" : "heads that the file names", names});
  auto& rows = out.table("rows", {"target", "target_token", {"seconds", "seconds", "{:.2f}"}});
  for (std::size_t i = 0; i < times.size(); ++i) {
    const std::size_t at = static_cast<std::size_t>(first) + i;
    rows.add({at, cross->query_tokens[at].label, times[i]});
  }
  return out;
}
}  // namespace

ReadTools alignment_tools() {
  return tools_of<Alignment, Times>();
}

}  // namespace headscope::cli
