#include "core/analysis/certificate.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <string_view>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/version.h"
#include "core/base/words.h"
#include "core/io/picture.h"
#include "core/io/sound.h"
#include "core/model/formats/model_files.h"
#include "core/model/parameter_parts.h"
#include "core/trace/layer_kinds.h"

namespace headscope {

namespace fs = std::filesystem;

namespace {

// Repeats itself, so that heads that look back have something to find; holds digits, marks and more than one script.
constexpr std::string_view built_in_text =
    "When Mary and John went to the store, John gave 12 apples (and 3 pears) to Mary.\n"
    "Über Nacht: naïve café, Привет, 你好. When Mary and John went to the store";
constexpr int ids_without_tokenizer = 48;
constexpr std::size_t label_length = 30;
constexpr const char* definition = float64_definition;

/// For a model without a tokenizer: ids spread over the vocabulary, and the first half again.
std::vector<std::int32_t> spread_ids(const ModelConfig& c) {
  std::vector<std::int32_t> ids;
  const int count = std::min(ids_without_tokenizer, c.context);
  for (int i = 0; i < count; ++i) ids.push_back(((i % (ids_without_tokenizer / 2)) * 7919 + 1) % c.dims.vocab);
  return ids;
}

std::string now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

/// NaN is the largest of all.
double larger(double a, double b) {
  return std::isnan(a) || a > b ? a : b;
}

/// A difference as a share of what it may be.
double share(const Gap& gap) {
  return std::isnan(gap.value) ? std::numeric_limits<double>::infinity() : gap.value / gap.bound;
}

struct Named {
  std::string what;
  const Gap* gap = nullptr;
};

/// "enc." before a layer of an encoder-decoder.
std::string stack_prefix(const Gap& gap) {
  return gap.stack == Stack::only ? "" : std::string(name_in(stack_names, gap.stack)) + ".";
}

/// The one that is furthest beyond its bound.
Named worst(const Verification& found) {
  Named out;
  const auto look = [&](const std::string& what, const Gap& gap) {
    if (!out.gap || share(gap) > share(*out.gap)) out = {what, &gap};
  };
  for (const Gap& gap : found.patterns) look(say("patterns of layer {}{}", stack_prefix(gap), gap.layer), gap);
  if (found.logits) look(said("logits"), *found.logits);
  if (found.losses) look(said("losses"), *found.losses);
  return out;
}

std::string difference(const Certificate::Check& check) {
  const Named gap = worst(check.found);
  return gap.gap ? say("{} by {}", gap.what, difference_text(gap.gap->value)) : said("nothing could be compared");
}

}  // namespace

std::string difference_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (value == 0 || (value >= 0.01 && value < 99.5)) return fmt::format("{:.2g}", value);  // no exponent yet
  std::string text = fmt::format("{:.1e}", value);
  const std::size_t digits = text.find('e') + 2;
  text.erase(digits, std::min(text.find_first_not_of('0', digits), text.size() - 1) - digits);
  return text;
}

bool Certificate::agrees() const {
  return !checks.empty() && !wrong();
}

const Certificate::Check* Certificate::wrong() const {
  const auto found = std::ranges::find_if(checks, [](const Check& each) { return !each.found.agrees(); });
  return found == checks.end() ? nullptr : &*found;
}

double Certificate::patterns() const {
  double largest = 0;
  for (const Check& check : checks)
    for (const Gap& gap : check.found.patterns) largest = larger(gap.value, largest);
  return largest;
}

double Certificate::logits() const {
  double largest = 0;
  for (const Check& check : checks)
    if (check.found.logits) largest = larger(check.found.logits->value, largest);
  return largest;
}

std::string place_of(const Gap& gap) {
  if (gap.query < 0) return "";
  if (gap.layer >= 0)
    return say("head {}{}.{}, query {}, key {}", stack_prefix(gap), gap.layer, gap.head, gap.query, gap.key);
  return gap.key >= 0 ? say("query {}, token {}", gap.query, gap.key) : say("query {}", gap.query);
}

Certificate certify(const LoadedModel& loaded, const CertificateRequest& request, const Ctx& ctx) {
  const ModelConfig& c = loaded.model->config();
  const ModelLocation place = locate_model(request.model);
  Certificate out;
  out.model = c.name;
  out.family = c.family;
  out.place = weights_place(place);
  out.files = stamp_of(place);
  out.program = program_version;  // what was found holds for the version that found it
  const auto changed = [&] {
    return Error(request.model.string(), "the files that the model was read from", "others: they have changed since",
                 "open the model again");
  };
  if (!request.opened.empty() && request.opened != out.files) throw changed();
  const ModelFiles files = ModelFiles::open(place);
  const RawWeights weights = read_weights(*files.weights, c);
  if (stamp_of(place) != out.files) throw changed();

  // What only a longer text meets: a window's end, a chunk's, a step in which queries grow.
  int widest = c.unturned_growth != 0 ? c.unturned_floor : 0;
  for (const auto* const each : {&c.windows, &c.chunks})
    if (!each->empty()) widest = std::max(widest, std::ranges::max(*each));
  const auto check = [&](const std::string& label, const RunRequest& asked, const ReferenceCapture* reference) {
    const auto trace = run(loaded, asked, ctx);
    const plain::Pass witness = plain::forward(c, weights, trace->ids(), ctx.stop, ctx.progress, trace->segments(),
                                               trace->encoder ? trace->encoder->ids() : std::vector<std::int32_t>(),
                                               trace->encoder ? trace->encoder->patches : trace->patches);
    const int tokens = static_cast<int>(trace->tokens.size());
    const int untried = widest > tokens ? widest : 0;
    out.engine = trace->source;
    out.checks.push_back({label, definition, tokens, untried, verify(*trace, witness)});
    if (reference)
      out.checks.push_back(
          {label, excerpt(request.reference.filename().string()), tokens, untried, verify(*trace, reference->values)});
  };
  const bool hears = c.encoder && c.encoder->sound;
  RunRequest built_in;
  if (c.vision)
    built_in.image = built_in_picture;
  else if (loaded.tokenizer)
    built_in.text = built_in_text;
  else
    built_in.ids = spread_ids(c);
  if (hears)
    built_in.sound = built_in_sound;
  else if (loaded.model->encoder()) {  // the same text on both sides
    if (loaded.source_tokenizer)
      built_in.source = built_in_text;
    else
      built_in.source_ids = spread_ids(*c.encoder);
  }
  built_in.too_long = RunRequest::TooLong::keep_first;
  check(c.vision ? "built-in picture" : hears ? "built-in sound" : "built-in text", built_in, nullptr);
  for (const std::string& text : request.texts) {
    RunRequest asked;
    if (c.vision)
      asked.image = text;
    else if (hears)
      asked.sound = text, asked.text = built_in.text, asked.ids = built_in.ids;
    else
      asked.text = text;
    if (loaded.model->encoder() && !hears) asked.source = text;
    const std::string named = c.vision || hears ? std::filesystem::path(text).filename().string() : text;
    check("\"" + excerpt(named, label_length) + "\"", asked, nullptr);
  }
  if (!request.reference.empty()) {
    const ReferenceCapture reference = read_reference(request.reference, c);
    if (c.vision)
      throw Error(request.reference.string(), "a capture of a text", "a model of pictures",
                  "its pass is checked beside its definition on the pictures that are named");
    RunRequest asked;
    asked.ids = reference.ids;
    asked.ids_are_whole = true;
    asked.sound = built_in.sound;
    check("its tokens", asked, &reference);
  }
  out.date = now();
  return out;
}

double certificate_work(const ModelConfig& c) {
  const ParameterParts parts = parameter_parts(c);
  const double source = c.encoder && c.encoder->sound ? certificate_work(*c.encoder) : 0;
  const double n = c.vision  ? c.vision->tokens()
                   : c.sound ? c.sound->rows
                             : std::min(static_cast<double>(c.context), static_cast<double>(built_in_text.size() + 1));
  const double each_token = static_cast<double>(parts.attention + parts.mlp) +
                            static_cast<double>(c.dims.d_model) * static_cast<double>(c.dims.vocab);
  // A score and a share of a value for every pair that may see each other: half of all, in an encoder all.
  double numbers = 0;
  for (const LayerKind& kind : layer_kinds(c.dims))
    numbers += static_cast<double>(kind.layers) *
               static_cast<double>(kind.dims.heads * (kind.dims.d_head + kind.dims.value_width()));
  const double pairs = n * n * numbers / (c.causal ? 2 : 1);
  return n * each_token + pairs + source;
}

std::string in_words(const Certificate& certificate) {
  if (const auto* wrong = certificate.wrong()) return say("differs: {}", difference(*wrong));
  return say("checked, max |Δ| {}", difference_text(certificate.patterns()));
}

std::string model_note(const std::string& model, const Certificate* certificate) {
  const std::string name = "model " + model;
  if (!certificate || certificate->checks.empty()) return name + ", not checked beside " + definition;
  const std::string date = certificate->date.substr(0, certificate->date.find('T'));
  if (const auto* wrong = certificate->wrong())
    return fmt::format("{}, differs from {} ({}): {}", name, wrong->witness, date, difference(*wrong));
  return fmt::format("{}, checked beside {} on {}: max |Δ| {} (patterns), {} (logits)", name, definition, date,
                     difference_text(certificate->patterns()), difference_text(certificate->logits()));
}

}  // namespace headscope
