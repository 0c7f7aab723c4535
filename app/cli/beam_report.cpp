#include "app/cli/beam_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "app/cli/trace_report.h"
#include "app/render/beam_picture.h"
#include "viz/scene/text.h"

namespace headscope::cli {

Report beam_report(const LoadedModel& loaded, const BeamTree& tree, const BeamSettings& settings,
                   const std::vector<Intervention>& edits) {
  const Tokenizer* tokenizer = loaded.tokenizer.get();
  Report out;
  std::string searched = words_of(settings);
  Cell changed = Cell::array();
  for (const Intervention& edit : edits)
    if (edit.enabled) changed.push_back(describe(edit)), searched += " · " + describe(edit);
  out.line(fmt::format("{}: {}", loaded.model->config().name, searched));
  out.data("model", model_json(loaded.model->info()));
  Cell prompt = Cell::array();
  for (const std::int32_t id : tree.prompt) prompt.push_back({{"id", id}, {"label", label_of(tokenizer, id)}});
  out.data("prompt", std::move(prompt));
  out.data("settings", {{"beams", settings.width},
                        {"length_penalty", settings.length_penalty},
                        {"early_stopping", name_in(stopping_names, settings.stopping)},
                        {"tokens", settings.tokens},
                        {"edits", std::move(changed)},
                        {"end", settings.end ? Cell(*settings.end) : Cell()}});
  auto& rows = out.table("beams", {"beam",
                                   {"score", "score", "{:.4f}"},
                                   {"sum", "Σ ln p", "{:.4f}"},
                                   {"probability", "probability", "{:.3g}"},
                                   "tokens",
                                   {"ends", "ends by"},
                                   only_in(Form::scripts, "ids"),
                                   only_in(Form::scripts, "text"),
                                   for_people("text", "{}", Column::Align::left)});
  for (std::size_t i = 0; i < tree.beams.size(); ++i) {
    const Beam& beam = tree.beams[i];
    const std::vector<std::int32_t> written = tree.tokens(beam.node);
    std::vector<std::int32_t> words = written;
    if (beam.ended) words.pop_back();
    const std::string text = tokenizer ? tokenizer->decode(words) : fmt::format("{}", fmt::join(words, " "));
    const double sum = tree.nodes[beam.node].sum;
    rows.add({i + 1, beam.score, sum, std::exp(sum), written.size(), beam.ended ? "its end" : "the last step",
              fmt::format("{}", fmt::join(written, " ")), text, printable(text)});
  }
  Cell nodes = Cell::array();
  for (const BeamNode& node : tree.nodes)
    nodes.push_back({{"parent", node.parent ? Cell(*node.parent) : Cell()},
                     {"step", node.step},
                     {"token", node.token},
                     {"label", label_of(tokenizer, node.token)},
                     {"log_probability", node.log_probability},
                     {"sum", node.sum},
                     {"fate", name_in(fate_names, node.fate)}});
  out.data("candidates", std::move(nodes));
  out.picture = [options = beam_tree_options(tree, tokenizer), searched,
                 name = loaded.model->config().name](const Style& style) {
    BeamTreeOptions own = options;
    own.titled = true;
    own.caption = fmt::format("{} · {}", name, searched);
    return beam_tree_scene(own, style);
  };
  return out;
}

}  // namespace headscope::cli
