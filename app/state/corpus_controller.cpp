#include "app/state/corpus_controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "core/analysis/learnt_language.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/utf8.h"
#include "core/base/words.h"
#include "core/io/shapes.h"
#include "core/model/picture_input.h"

namespace headscope {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

namespace {

constexpr double seconds_between_views = 0.4;
// Of the text before and after a position that stands out.
constexpr std::size_t shown_before = 160, shown_after = 90;

std::string_view last_bytes(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t at = text.size() - most;
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
  return text.substr(at);
}
std::string_view first_bytes(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return text.substr(0, most);
}

Worded place_words(const CorpusSource& source, const PassagePlace& place) {
  if (source.drawn > 0 && source.kind == CorpusKind::pairs) return say_later("pair {}", place.piece);
  if (source.drawn > 0 && source.kind == CorpusKind::pictures)
    return Worded::entry(std::string(nth(shape_names(), drawn_shapes(source.seed, place.piece).shape))) +
           fmt::format(" {}", place.piece);
  if (source.drawn > 0)
    return place.window > 0 ? say_later("story {}, part {}", place.piece, place.window + 1)
                            : say_later("story {}", place.piece);
  const std::string file = static_cast<std::size_t>(place.file) < source.files.size()
                               ? fs::path(nth(source.files, place.file).path).filename().string()
                               : "?";
  return source.kind == CorpusKind::pictures ? Worded(file) : say_later("{}, byte {}", file, place.begin);
}

/// The shards in a folder as one.
CorpusResults merged(const fs::path& folder) {
  std::vector<CorpusResults> parts;
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".json") names.push_back(entry.path().string());
  if (names.empty()) throw Error(folder.string(), "files of shards, *.json", "none");
  std::ranges::sort(names);
  for (const std::string& name : names) parts.push_back(load_corpus_results(name));
  return merge(parts, names);
}

/// The picture as the model is given it; without a model as it is, small enough to be shown.
PatchPicture picture_of(const fs::path& file, const Model* model) {
  const Picture picture = read_picture(file);
  if (model) return patch_picture(prepared(picture, *model->config().vision), *model->config().vision);
  constexpr Index most = 224;
  const Index longer = std::max(picture.width, picture.height);
  const auto side = [&](Index of) { return std::max<Index>(1, of * most / longer); };
  const Picture small =
      longer > most ? resized(picture, side(picture.height), side(picture.width), Resample::bilinear) : picture;
  return {.height = small.height, .width = small.width, .rgb = small.rgb};
}

/// Shows `text` with the token that stands out of it; one that stands for no text (of those that models put around
/// it) by its label.
void show_words(ShownExample& out, const std::string& text, const Token* token, bool first) {
  const std::string_view all = text;
  if (!token) {
    constexpr std::size_t shown = shown_before + shown_after;
    out.after = std::string(first_bytes(all, shown)) + (all.size() > shown ? "…" : "");
    return;
  }
  std::size_t begin = first ? 0 : all.size(), end = begin;
  if (token->begin >= 0) {
    begin = static_cast<std::size_t>(token->begin), end = static_cast<std::size_t>(token->end);
    while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    out.focus = all.substr(begin, end - begin);
  } else {
    out.focus = first ? token->label + " " : " " + token->label;
  }
  const std::string_view before = all.substr(0, begin), after = all.substr(end);
  out.before = std::string(before.size() > shown_before ? "…" : "") + std::string(last_bytes(before, shown_before));
  out.after = std::string(first_bytes(after, shown_after)) + (after.size() > shown_after ? "…" : "");
}

/// `loaded` tells the tokens of a passage; an empty one, that nothing stands out.
ShownExample shown_example(const CorpusResults& results, const CorpusExample& example, Stack stack,
                           const LoadedModel& loaded) {
  ShownExample out{example, place_words(results.source, example.place)};
  try {
    const CorpusKind kind = results.source.kind;
    RunRequest request = passage_request(kind, passage_text(results.source, example.place));
    if (kind == CorpusKind::texts) request.add_bos = results.bos;
    std::vector<Token> tokens;
    const bool source = kind == CorpusKind::pairs && stack == Stack::encoder;
    if (loaded.model)
      tokens = source ? tokenize(loaded.encoder(), encoder_request(*loaded.model, request)) : tokenize(loaded, request);
    const bool known = example.query >= 0 && static_cast<std::size_t>(example.query) < tokens.size();
    const Token* token = known ? &nth(tokens, example.query) : nullptr;
    if (kind == CorpusKind::pictures) {
      out.picture = std::make_shared<const PatchPicture>(picture_of(request.image, loaded.model.get()));
      if (token) out.focus = token->label;
    } else {
      if (kind == CorpusKind::pairs) out.beside = source ? request.text : request.source;
      show_words(out, source ? request.source : request.text, token, example.query == 0);
    }
  } catch (const Error& gone) {
    out.error = gone.what();
  }
  return out;
}

}  // namespace

/// A CorpusRun as a sweep. The run itself is made on the worker: finding the files of a folder takes time.
class CorpusController::Reading final : public Sweep {
 public:
  using Result = CorpusResults;
  using Make = std::function<std::unique_ptr<CorpusRun>()>;
  Reading(LoadedModel of, Make make) : model(std::move(of)), make_(std::move(make)) {}

  void step(const Ctx& ctx) override {
    if (!run_) run_ = make_();
    run_->step(ctx);
  }
  double share() const override { return run_ ? run_->progress() : 0; }
  int done() const override { return run_ ? static_cast<int>(run_->results().statistics.passages()) : 0; }
  int total() const override { return 0; }
  bool finished() const override { return run_ && run_->results().finished; }
  /// A copy now and then; nullptr in between.
  std::shared_ptr<const CorpusResults> result() {
    if (!run_) return nullptr;
    const auto now = Clock::now();
    if (!finished() && std::chrono::duration<double>(now - last_).count() < seconds_between_views) return nullptr;
    last_ = now;
    return rest();
  }
  std::shared_ptr<const CorpusResults> rest() {
    return run_ ? std::make_shared<CorpusResults>(run_->results()) : nullptr;
  }

  const LoadedModel model;

 private:
  Make make_;
  std::unique_ptr<CorpusRun> run_;
  Clock::time_point last_{};
};

CorpusController::CorpusController(JobRunner& jobs, DocumentEditor& editor, const RunController& run)
    : jobs_(jobs), editor_(editor), run_(run), controller_(jobs, "corpus", to_say("reading the corpus")) {}

void CorpusController::begin_with(const fs::path& path) {
  if (path.extension() == ".json") return load(path);
  draft_.drawn = false;
  draft_.path = path.string();
  start_when_open_ = true;
}

CorpusKind CorpusController::kind() const {
  const auto& model = run_.results().model.model;
  return model ? corpus_kind_of(*model) : CorpusKind::texts;
}

void CorpusController::start() {
  const Results& open = run_.results();
  if (!open.model.model)
    return jobs_.tell(to_say("Open a model first: it reads the corpus."), "corpus", Message::Level::error);
  const LoadedModel model = open.model;
  const std::string name = open.model_folder.filename().string();
  results_.reset();
  began_ = draft_;
  run(std::make_shared<Reading>(model, [model, name, folder = open.model_folder, draft = draft_, kind = kind()] {
    static constexpr const char* files[] = {"a text file or a folder", "a file of pairs or a folder",
                                            "a picture or a folder"};
    if (!draft.drawn && draft.path.empty())
      throw Error("corpus", files[static_cast<std::size_t>(kind)], "nothing", "write its path, or let some be drawn");
    CorpusSource source = draft.drawn
                              ? drawn_corpus(kind, draft.count, static_cast<std::uint64_t>(std::max(draft.seed, 0)))
                              : corpus_of_files({draft.path}, draft.lines, kind);
    if (draft.drawn && kind == CorpusKind::texts) source.grammar = learnt_grammar_name(folder).value_or(source.grammar);
    const int window = kind == CorpusKind::pictures ? 0 : draft.window;
    return std::make_unique<CorpusRun>(model, name, std::move(source), window);
  }));
}

void CorpusController::resume() {
  if (!can_resume()) return;
  if (reading_) return run(reading_);
  began_.reset();
  const LoadedModel model = run_.results().model;
  const std::string name = run_.results().model_folder.filename().string();
  run(std::make_shared<Reading>(
      model, [model, name, from = results_] { return std::make_unique<CorpusRun>(model, name, *from); }));
}

void CorpusController::run(std::shared_ptr<Reading> reading) {
  reading_ = std::move(reading);
  tokens_before_ = results_ ? results_->tokens() : 0;
  controller_.start(reading_, [this](std::shared_ptr<const CorpusResults> results) { take(std::move(results)); });
}

void CorpusController::take(std::shared_ptr<const CorpusResults> results) {
  results_ = std::move(results);
  seconds_ = controller_.seconds();
}

void CorpusController::stop() {
  controller_.cancel();
  if (!reading_) return;
  // What was measured since the last copy.
  jobs_.submit(
      {"corpus rest", to_say("reading the corpus")},
      [this, reading = reading_](Worker::Job&) -> Worker::Deliver {
        auto rest = reading->rest();
        return [this, reading, rest] {
          if (rest && reading == reading_) results_ = rest;
        };
      },
      JobRunner::OnStop::own);
}

void CorpusController::frame() {
  if (start_when_open_ && run_.results().model.model) {
    start_when_open_ = false;
    start();
  }
  const bool running = controller_.running();
  controller_.frame();
  if (running && controller_.phase() == SweepController::Phase::cancelled)
    stop();  // by the button that stops everything
}

CorpusController::Phase CorpusController::phase() const {
  switch (controller_.phase()) {
    case SweepController::Phase::running:
      return Phase::running;
    case SweepController::Phase::failed:
      return Phase::failed;
    default:
      break;
  }
  if (!results_) return Phase::idle;
  return results_->finished ? Phase::finished : Phase::stopped;
}

bool CorpusController::can_resume() const {
  return phase() == Phase::stopped && (reading_ || of_open_model());
}

bool CorpusController::answers_draft() const {
  return phase() == Phase::finished && began_ == draft_ && of_open_model();
}

bool CorpusController::of_open_model() const {
  const Results& open = run_.results();
  return results_ && open.model.model && open.model_folder.filename().string() == results_->model &&
         open.model.model->info().parameters == results_->parameters;
}

double CorpusController::progress() const {
  if (controller_.running()) return controller_.share();
  return results_ && results_->finished ? 1 : controller_.share();
}

double CorpusController::tokens_per_second() const {
  if (!results_ || seconds_ <= 0) return 0;
  return static_cast<double>(results_->tokens() - tokens_before_) / seconds_;
}

void CorpusController::save(const fs::path& file) {
  if (!results_) return;
  jobs_.on_files("corpus save", [this, file, results = results_](Worker::Job&) -> Worker::Deliver {
    save_corpus_results(*results, file);
    return [this, file] { jobs_.tell(say_later("Saved {}", file.string()), "corpus save"); };
  });
}

void CorpusController::load(const fs::path& file) {
  jobs_.on_files("corpus load", [this, file](Worker::Job&) -> Worker::Deliver {
    auto loaded = std::make_shared<CorpusResults>(fs::is_directory(file) ? merged(file) : load_corpus_results(file));
    return [this, loaded] {
      controller_.cancel();
      reading_.reset();
      began_.reset();
      seconds_ = 0;
      results_ = loaded;
    };
  });
}

const std::vector<ShownExample>* CorpusController::examples(HeadId head, std::size_t metric, ExampleKind kind,
                                                            Stack stack) {
  const auto shown = [&] { return examples_ ? &*examples_ : nullptr; };
  if (!results_) return nullptr;
  const bool same =
      examples_head_ == head && examples_stack_ == stack && examples_metric_ == metric && examples_kind_ == kind;
  if (examples_of_ == results_ && same) return shown();
  if (!same) examples_.reset();  // while a corpus is read, the last ones stay until the next come
  examples_of_ = results_;
  examples_head_ = head;
  examples_stack_ = stack;
  examples_metric_ = metric;
  examples_kind_ = kind;
  const CorpusStatistics& all = results_->part(stack);
  const int row = head.layer * all.heads() + head.head;
  if (head.layer >= all.layers() || head.head >= all.heads()) {
    examples_.emplace();
    return shown();
  }
  std::vector<CorpusExample> wanted;
  if (kind == ExampleKind::typical) {
    wanted = all.typical(row, metric);
  } else {
    const auto list = kind == ExampleKind::highest ? all.highest(row, metric) : all.lowest(row, metric);
    wanted.assign(list.begin(), list.end());
  }
  const LoadedModel model = reading_ ? reading_->model : of_open_model() ? run_.results().model : LoadedModel{};
  jobs_.on_files("corpus examples", [this, wanted, stack, model, results = results_](Worker::Job&) -> Worker::Deliver {
    std::vector<ShownExample> read;
    for (const CorpusExample& example : wanted) read.push_back(shown_example(*results, example, stack, model));
    return [this, read] { examples_ = read; };  // a newer request took the place of an older one
  });
  return shown();
}

void CorpusController::open(const ShownExample& shown, HeadId head, Stack stack) {
  if (!results_) return;
  if (!of_open_model())
    return jobs_.show(
        {Message::Level::error, say("These results are of {}. Open that model first.", results_->model), "corpus"});
  jobs_.on_files(
      "corpus open", [this, head, stack, example = shown.example, results = results_](Worker::Job&) -> Worker::Deliver {
        const RunRequest input = passage_request(results->source.kind, passage_text(results->source, example.place));
        return [this, head, stack = results->encoder ? stack : Stack::only, example, input] {
          editor_.show_input(input, stack, head,
                             example.query >= 0 ? std::optional<Index>(example.query) : std::nullopt);
        };
      });
}

}  // namespace headscope
