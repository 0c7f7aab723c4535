#include "app/state/compare_controller.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "app/assets.h"
#include "app/state/jobs.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/run/pass_memory.h"

namespace headscope {

namespace {
constexpr int next_tokens = 12;
// Rows of a head that stand for all of a longer text.
constexpr Index compared_rows = 512;
}  // namespace

std::string ComparedSide::label(std::int32_t id) const {
  return tokenizer && id < tokenizer->vocab_size() ? tokenizer->token(id).label : fmt::format("#{}", id);
}

int ComparedSide::row(HeadId head) const {
  for (std::size_t i = 0; i < trace->maps.size(); ++i)
    if (trace->maps[i].layer() == head.layer && trace->maps[i].head() == head.head) return static_cast<int>(i);
  return -1;
}

const HeadDifference* Comparison::difference(HeadId head) const {
  const auto found = std::ranges::find_if(heads, [&](const HeadDifference& d) { return d.id == head; });
  return found == heads.end() ? nullptr : &*found;
}

std::shared_ptr<const Comparison> compare_sides(ComparedSide a, ComparedSide b, TextUnit unit,
                                                std::optional<std::vector<int>> partner, const std::stop_token& stop) {
  auto out = std::make_shared<Comparison>();
  const WordGroups words_a = word_groups(a.run->tokens), words_b = word_groups(b.run->tokens);
  out->asked = unit;
  if (std::max(words_a.words(), words_b.words()) <= most_words && maps_in_reach(*a.run) && maps_in_reach(*b.run))
    out->unit = unit;
  for (ComparedSide* side : {&a, &b}) {
    jobs::at_home(side->run);
    if (side->table.value.empty()) {  // else known from other pairs of the same run
      side->table = head_table(*side->run);
      side->losses = token_losses(*side->run);
    }
    side->trace = out->unit == TextUnit::tokens
                      ? side->run
                      : std::make_shared<const Trace>(in_words(*side->run, side == &a ? words_a : words_b));
    if (stop.stop_requested()) throw Cancelled();
  }
  out->aligned = align_traces(*a.trace, *b.trace);
  out->partner = partner && partner->size() == out->aligned.size() ? std::move(*partner) : out->aligned;
  out->heads = head_differences(*a.trace, *b.trace, out->partner, compared_rows, stop);
  out->ranked.resize(out->heads.size());
  std::iota(out->ranked.begin(), out->ranked.end(), std::size_t{0});
  std::ranges::stable_sort(out->ranked, std::ranges::greater{}, [&](std::size_t i) {
    const double value = out->heads[i].total_variation;
    return std::isnan(value) ? -1 : value;
  });
  out->next_a = top_next(*a.run, next_tokens);
  out->next_b = top_next(*b.run, next_tokens);
  const auto at_a = answer_position(*a.run), at_b = answer_position(*b.run);
  if (a.run->logits.defined() && b.run->logits.defined() && a.run->logits.dim(1) == b.run->logits.dim(1) &&
      a.run->model.objective == b.run->model.objective && at_a && at_b) {
    out->next = next_token_change(*a.run, *b.run, next_tokens, static_cast<int>(*at_a), static_cast<int>(*at_b));
    out->kl = aligned_kl(*a.run, *b.run, out->unit == TextUnit::tokens ? out->partner : align_traces(*a.run, *b.run));
  }
  out->a = std::move(a);
  out->b = std::move(b);
  return out;
}

std::vector<int> paired(std::vector<int> partner, int of_a, int of_b) {
  if (of_a < 0 || of_a >= static_cast<int>(partner.size())) return partner;
  int& mine = nth(partner, of_a);
  const bool apart = mine == of_b;
  std::ranges::replace(partner, of_b, -1);
  mine = apart ? -1 : of_b;
  return partner;
}

void CompareController::begin_with(const std::string& model, const std::string& text) {
  text_ = text;
  if (!text.empty()) with_ = With::text;
  if (model.empty()) return;
  model_ = find_bundled_model(model).value_or(model);
  with_ = With::model;
}

bool CompareController::reads_source() const {
  const Results& results = run_.results();
  return results.translates() && !results.hears();
}

bool CompareController::reads_ids() const {
  const LoadedModel& open = run_.results().model;
  return open.model && !(reads_source() ? open.source_tokenizer : open.tokenizer);
}

WrittenIds CompareController::written_ids() const {
  const Model& model = *run_.results().model.model;
  return read_token_ids(text_, (reads_source() ? *model.encoder() : model).config().dims.vocab);
}

std::string CompareController::missing() const {
  const auto& run = run_.results().run;
  if (with_ != With::training && run_.results().capture)
    return said(
        "This runs the model again, and what is open is attention that was captured elsewhere. Two captures are "
        "compared by headscope-cli compare --trace A --with-trace B.");
  if (with_ != With::training && !run)
    return run_.results().too_long
               ? said("The text is too long for this model: in Explore, on the left, choose which part it shall read.")
               : said("Open a model and write a text in Explore first.");
  switch (with_) {
    case With::edits:
      if (std::ranges::none_of(run->request.edits, &Intervention::enabled))
        return said(
            "Nothing is edited yet. In Explore, ablate a head (X), move a temperature, choose a mask or add an edit: "
            "before and after will stand here.");
      return "";
    case With::text:
      if (text_.empty()) return said("Write the second text on the left.");
      return reads_ids() ? written_ids().error : "";
    case With::model:
      return model_.empty() ? said("Choose the second model on the left.") : "";
    case With::training:
      return moment_count() < 2 ? said("Train a model in the Train workspace: two of its moments can be compared here.")
                                : "";
  }
  return "";
}

const std::shared_ptr<const TrainingView>& CompareController::moment(std::size_t index) const {
  return training_->moments()[std::min(index, moment_count() - 1)].view;
}

CompareController::Runs CompareController::runs() const {
  switch (with_) {
    case With::edits:
      break;
    case With::text:
      return {with_, run_.results().run, {}, text_, {}, 0};
    case With::model:
      return {with_, run_.results().run, {}, {}, model_, choices_};
    case With::training:
      return {with_, moment(moments_.first), moment(moments_.second), {}, {}, 0};
  }
  return {with_, run_.results().run, {}, {}, {}, 0};
}

CompareController::Question CompareController::question() const {
  Question out{runs(), editor_.state().view.text_unit, {}};
  if (by_hand_of_ != out.runs) return out;
  if (const auto by_hand = by_hand_.find(out.unit); by_hand != by_hand_.end()) out.by_hand = by_hand->second;
  return out;
}

void CompareController::frame(bool shown) {
  if (std::exchange(stops_, jobs_.stops()) != stops_) answer_.stop(jobs_);  // the user pressed Stop
  if (!shown || !missing().empty()) return;
  const Results& results = run_.results();
  // Just after another model was opened the last run is still the old one's.
  if (with_ != With::training && results.run->request.model != results.model_folder) return;
  const Question now = question();
  if (by_hand_of_ != now.runs) {
    by_hand_of_ = now.runs;
    by_hand_.clear();
  }
  if (!answer_.asked_for(now)) ask(now);
  const auto known = answer_.current();
  if (!known || known == seen_) return;
  seen_ = known;
  // A head that only one side has shows nothing: then the one that differs most.
  if (known->difference(editor_.document().selected) || known->ranked.empty()) return;
  const HeadDifference& most = known->heads[known->ranked.front()];
  editor_.select(most.id);
}

void CompareController::ask(const Question& question) {
  const TextUnit unit = question.unit;
  // Other pairs of the same two runs, or words for tokens: these need not run again.
  if (result() && answer_.last_key()->runs == question.runs)
    return answer_.want(jobs_, question, [unit, known = result(), partner = question.by_hand](const Ctx& ctx) {
      return compare_sides(known->a, known->b, unit, partner, ctx.stop);
    });
  if (with_ == With::training)
    return answer_.want(
        jobs_, question, [unit, before = moment(moments_.first), after = moment(moments_.second)](const Ctx& ctx) {
          return compare_sides({say_later("step {}", before->step), before->facts->trace},
                               {say_later("step {}", after->step), after->facts->trace}, unit, {}, ctx.stop);
        });
  answer_.want(
      jobs_, question,
      [unit, with = with_, text = text_, folder = model_, run = run_.results().run, model = run_.results().model,
       second = second_, memory = jobs_.memory(), device = jobs_.device(),
       reads_source = reads_source(),  // beside a sound the target is another
       by_ids = with_ == With::text && reads_ids() ? std::optional(written_ids().ids) : std::nullopt](const Ctx& ctx) {
        const auto part = [&](const std::shared_ptr<const Trace>& whole) { return jobs::part_of(whole, run->stack); };
        const auto shown = part(with_all_logits(model, run->request, run->whole, ctx, *memory));
        ComparedSide a{"A", shown, model.tokenizer}, b;
        RunRequest other = run->request;
        other.capture.all_logits = true;
        if (with == With::edits) {
          other.edits.clear();
          b = {to_say("after"), shown, model.tokenizer};
          a = {to_say("before"), part(headscope::run(model, other, ctx)), model.tokenizer};
        } else if (with == With::text) {
          if (reads_source) other.text.clear();  // what is said of another source is another text
          other.ids.clear();
          if (by_ids)
            (reads_source ? other.source_ids : other.ids) = *by_ids;
          else
            (reads_source ? other.source : other.text) = text;
          other.masked.clear();  // positions of the first text
          b = {"B", part(headscope::run(model, other, ctx)), model.tokenizer};
        } else {
          const FilesStamp files = FilesStamp::of(folder);
          if (second->folder != folder || !second->model.model || second->files != files || second->device != device)
            *second = {folder, files, load_model(folder, ctx.backend, {ctx.stop, ctx.progress}), device};
          other.model = folder;
          other.edits.clear();  // they name layers and heads of the first model
          other.masked = masks_for(second->model, model, run->request);
          if (run->request.ids.empty() || !model.tokenizer) {
            b.run = part(headscope::run(second->model, other, ctx));
          } else {  // ids mean nothing to another vocabulary: the text they stand for
            other.text = model.tokenizer->decode(run->request.ids);
            other.ids.clear();
            b.run = part(headscope::run(second->model, other, ctx));
          }
          b.tokenizer = second->model.tokenizer;
          const std::string& name = run->trace->model.name;
          a.name = name;
          b.name = b.run->model.name == name ? name + " (2)" : b.run->model.name;
        }
        return compare_sides(std::move(a), std::move(b), unit, {}, ctx.stop);
      });
}

void CompareController::pair(int of_a, int of_b) {
  const Question now = question();
  if (!result() || answer_.last_key()->runs != now.runs || answer_.last_key()->unit != now.unit) return;
  // The pairs of a click before may not have been computed yet.
  std::vector<int> changed = paired(now.by_hand.value_or(result()->partner), of_a, of_b);
  by_hand_.erase(now.unit);
  if (changed != result()->aligned) by_hand_[now.unit] = std::move(changed);
}

void CompareController::reset_pairs() {
  by_hand_.erase(editor_.state().view.text_unit);
}

}  // namespace headscope
