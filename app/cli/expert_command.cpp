// headscope-cli expert: learns a vector z of singular values on a text (singular value fine-tuning), says what it costs
// other texts, and keeps it as a session whose edits carry it out.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/cli/expert_adaptation.h"
#include "app/cli/input.h"
#include "app/cli/output.h"
#include "app/state/session.h"
#include "core/analysis/singular_tuning.h"
#include "core/base/error.h"
#include "core/base/file.h"

namespace headscope::cli {

namespace {
struct ExpertOptions {
  Input input;
  std::vector<std::string> matrices{"v", "mlp_out"}, others;
  int steps = 40;
  double rate = 0.02;
  std::string out;
  Output output;
};

void learn_expert(Console& console, const ExpertOptions& options) {
  if (!options.out.empty()) expect_writable(options.out);
  const Opened opened = open_input(console, options.input, {.maps = MapStorage::none});
  const RunRequest& request = *options.input.asked->request;
  const ModelConfig& config = opened.loaded.model->config();
  if (!request.edits.empty()) throw UsageError("an expert learns the model as it is: leave edits away");
  const Batch batch = text_batch(opened.trace->ids());
  if (batch.length < 2) throw Error("text", "at least two tokens", std::to_string(batch.length));
  std::vector<Batch> others;
  int longest = batch.length;
  for (const std::string& text : options.others) {
    RunRequest other = request;
    other.text = text, other.ids.clear();
    others.push_back(text_batch(run(opened.loaded, other, Ctx{console.backend(), nullptr, console.stop()})->ids()));
    if (others.back().length < 2) throw Error("--other", "at least two tokens", std::to_string(others.back().length));
    longest = std::max(longest, others.back().length);
  }
  Backend processor(console.backend().pool().threads());  // weights that change are in its memory
  std::unique_ptr<SingularLearner> learner;
  std::vector<double> before, losses, after;
  console.with_progress("learning", [&](const Ctx& ctx) {
    learner = singular_learner(opened.loaded, request.model, matrices_in(options.matrices), {.rate = options.rate},
                               longest, processor, ctx.stop);
    for (const Batch& other : others) before.push_back(learner->loss(other, ctx.stop));
    for (int step = 0; step < options.steps; ++step) {
      losses.push_back(learner->step(batch, ctx.stop));
      if (ctx.progress) *ctx.progress = static_cast<float>(step + 1) / static_cast<float>(options.steps);
    }
    learner->set_expert(as_written(learner->expert()));  // what is told is what the edits do
    losses.push_back(learner->loss(batch, ctx.stop));
    for (const Batch& other : others) after.push_back(learner->loss(other, ctx.stop));
  });

  const SingularExpert& expert = learner->expert();
  const std::vector<Intervention> learnt = expert_edits(expert);
  if (learnt.empty())
    throw Error(config.name + ": z", "one that differs from 1 by at least 0.0001, as edits write it",
                fmt::format("none after {} step{}", options.steps, options.steps == 1 ? "" : "s"),
                "a larger --rate or more --steps may help");
  const std::int64_t all = learner->parameters();
  Report out;
  out.line(fmt::format("{}: {} numbers z of {} matrices; the model has {}", config.name, expert.numbers(),
                       expert.parts.size(), all));
  out.line(fmt::format("loss on this text {:.4f} → {:.4f} nats in {} step{}", losses.front(), losses.back(),
                       options.steps, options.steps == 1 ? "" : "s"));
  out.data("numbers", expert.numbers());
  out.data("parameters", all);
  out.data("loss", losses);
  Cell elsewhere = Cell::array();
  for (std::size_t i = 0; i < others.size(); ++i) {
    elsewhere.push_back({{"before", before[i]}, {"after", after[i]}});
    out.line(fmt::format("on \"{}\" {:.4f} → {:.4f}", options.others[i], before[i], after[i]));
  }
  out.data("others", std::move(elsewhere));
  auto& rows = out.table("parts", {"layer",
                                   "matrix",
                                   {"numbers", "numbers z"},
                                   {"least", "least z", "{:.3f}"},
                                   {"most", "largest z", "{:.3f}"},
                                   {"moved", "mean |z − 1|", "{:.4f}"}});
  for (const SingularExpert::Part& part : expert.parts) {
    double moved = 0;
    for (const double z : part.z) moved += std::abs(z - 1) / static_cast<double>(part.z.size());
    rows.add({part.layer, std::string(name_of(part.matrix)), part.z.size(), std::ranges::min(part.z),
              std::ranges::max(part.z), moved});
  }
  Cell edits = Cell::array();
  for (const Intervention& edit : learnt) edits.push_back(describe(edit));
  out.data("edits", std::move(edits));
  out.line(
      "Learnt by the gradient of this text's loss; Transformer² learns its experts by REINFORCE, with a price on "
      "leaving the model.");
  if (!options.out.empty()) write_expert_session(console, options.out, request, learnt, "singular");
  console.print(out.printed(options.output.form()));
}
}  // namespace

std::vector<WeightMatrix> matrices_in(const std::vector<std::string>& names) {
  std::vector<WeightMatrix> out;
  for (const std::string& name : names)
    for (int each = 0; each < weight_matrix_count; ++each)
      if (name_of(static_cast<WeightMatrix>(each)) == name) out.push_back(static_cast<WeightMatrix>(each));
  return out;
}

std::vector<std::string> matrix_names() {
  std::vector<std::string> out;
  for (int each = 0; each < weight_matrix_count; ++each) out.emplace_back(name_of(static_cast<WeightMatrix>(each)));
  return out;
}

void write_expert_session(Console& console, const std::string& file, const RunRequest& request,
                          const std::vector<Intervention>& edits, const std::string& page) {
  Session session;
  RunRequest edited = request;
  edited.edits = edits;
  session.document = document_of(edited);
  session.document.model = std::filesystem::absolute(request.model);
  session.window.workspace = page.empty() ? "Explore" : "Analyse";
  if (!page.empty()) session.window.pages["Analyse"] = page;
  write_file_atomically(file, to_json(session));
  console.say(fmt::format("{}: a session with the model, the text and these edits (headscope --session)", file));
}

void add_expert(Command& app, Console& console) {
  auto options = std::make_shared<ExpertOptions>();
  Command command = app.add_subcommand(
      "expert", "Learns a vector of singular values on a text (Transformer²), a few numbers a matrix");
  options->input.add_to(command, {.short_edits = false, .part = false});
  command.add_option("--matrices", options->matrices, "Whose singular values, in every layer")
      .check(one_of(matrix_names()))
      .delimiter(',')
      .type_name("q,k,v,o,mlp_in,mlp_gate,mlp_out")
      .show_default();
  command.add_option("--steps", options->steps, "Of Adam").check(range(1, 100000)).show_default();
  command.add_option("--rate", options->rate, "By how much a z moves in a step, at most")
      .check(positive())
      .check(range(0.0, 1.0))
      .show_default();
  command.add_option("--other", options->others, "What the expert costs on this text; once for each")
      .type_name("TEXT")
      .take_all();
  command.add_option("-o,--out", options->out, "A session of model, text and the expert's edits")
      .type_name("FILE.json");
  options->output.add_to(command);
  add_expert_tasks(command, console);
  add_expert_choose(command, console);
  add_expert_reward(command, console);
  add_expert_compose(command, console);
  command.does([options, &console] { learn_expert(console, *options); });
}

}  // namespace headscope::cli
