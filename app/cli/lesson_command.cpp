// headscope-cli lesson: lessons as files. list: what there is; check: whether every state opens and every claim is
// true; show: a lesson in words with the numbers of the run; export: the same as a page to print; terms: what its
// formulas may ask.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "app/cli/commands.h"
#include "app/cli/output.h"
#include "app/state/lesson_handout.h"
#include "app/state/lesson_session.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/language.h"
#include "core/lesson/translation.h"
#include "viz/export/pango_text.h"

namespace headscope::cli {

namespace {
namespace fs = std::filesystem;

/// Lessons by file or by name ("heads" or "03-heads"); none: all there are.
std::vector<fs::path> named(const std::vector<std::string>& names) {
  const std::vector<fs::path> all = lesson_files();
  if (names.empty()) return all;
  std::vector<fs::path> out;
  for (const std::string& name : names) {
    const auto bundled = std::ranges::find_if(all, [&](const fs::path& file) {
      const std::string stem = file.stem().string();
      return stem == name || (stem.size() > 3 && stem.substr(3) == name);
    });
    out.push_back(bundled != all.end() ? *bundled : fs::path(name));
  }
  return out;
}

/// Models are opened once for all steps that use them.
class Runs {
 public:
  explicit Runs(Console& console) : console_(console) {}
  std::shared_ptr<LessonRun> of(const LessonScene& scene) {
    const RunRequest request = lesson_request(scene);
    auto& model = models_[request.model];
    if (!model.model) model = load_model(request.model, console_.backend());
    return std::make_shared<LessonRun>(model, request, lesson_stack(scene), console_.backend());
  }
  /// A lesson asks the same of the same text in every language: that is computed once, and kept until the next lesson.
  std::shared_ptr<LessonRun> of(const LessonScene& scene, const fs::path& original) {
    if (std::exchange(original_, original) != original) kept_.clear();
    const RunRequest request = lesson_request(scene);
    const Stack stack = lesson_stack(scene);
    for (const Kept& each : kept_)
      if (each.request == request && each.stack == stack) return each.run;
    return kept_.emplace_back(Kept{request, stack, of(scene)}).run;
  }

 private:
  struct Kept {
    RunRequest request;
    Stack stack;
    std::shared_ptr<LessonRun> run;
  };
  Console& console_;
  std::map<fs::path, LoadedModel> models_;
  fs::path original_;
  std::vector<Kept> kept_;
};

bool there_is(const fs::path& file) {
  std::error_code ignored;
  return fs::exists(file, ignored);
}

/// Without a translation lessons are in English, whatever of it is asked for: "en_GB".
bool english(const std::string& language) {
  return language.substr(0, language.find('_')) == "en";
}

/// In which lessons are read; says so where that was asked for and there is none.
struct LanguageOption {
  std::string wanted;
  void add_to(Command& command) {
    command
        .add_option("--language", wanted, "Of the lesson, where it is translated: en, de, zh, pt_BR; else the system's")
        .check(words_of([](const std::string& words) { return parse_language(words).has_value(); },
                        "a language, such as de"))
        .type_name("LL");
  }
  std::string language() const { return wanted.empty() ? system_language() : *parse_language(wanted); }
  Lesson read(Console& console, const fs::path& file) const {
    std::string why_not;
    Lesson lesson = read_lesson_in(file, language(), why_not);
    if (!why_not.empty()) console.say("headscope-cli: " + why_not);
    if (!wanted.empty() && !english(language()) && lesson.language.empty() && why_not.empty())
      console.say(fmt::format("headscope-cli: {} is not translated to {}: {} has English", lesson.id, wanted,
                              file.filename().string()));
    return lesson;
  }
};

/// Each lesson and what it is in other languages; with a language, in that one alone. Without names, lessons that are
/// not translated to it are left out; throws Error where a named one is not.
std::vector<fs::path> every_language(const std::vector<std::string>& names, const LanguageOption& option) {
  std::vector<fs::path> all;
  for (const fs::path& file : named(names)) {
    if (!option.wanted.empty()) {
      const fs::path original = original_of(file), translated = in_language(original, option.language());
      if (translated != original || english(option.language()) || !there_is(file)) {
        all.push_back(translated);
      } else if (!names.empty()) {
        std::vector<std::string> there{"en"};
        for (const fs::path& each : translations_of(original)) there.push_back(language_of(each));
        throw Error(original.string(), "a translation to " + option.wanted, fmt::format("{}", fmt::join(there, ", ")));
      }
      continue;
    }
    all.push_back(file);
    std::ranges::copy(translations_of(file), std::back_inserter(all));
  }
  return all;
}

void check(Console& console, const std::vector<std::string>& names, const LanguageOption& language,
           const Output& output) {
  Runs runs(console);
  Report report;
  auto& table = report.table("steps", {"lesson", "step", "title", "fault"}, Form::scripts);
  int steps = 0, good = 0, wrong = 0, lessons = 0;
  const auto fault = [&](const std::string& lesson, int step, const std::string& title, const std::string& what) {
    ++wrong;
    table.add({lesson, step, title, what});
    report.line(step > 0 ? fmt::format("{}, step {} \"{}\"\n  {}", lesson, step, title, what)
                         : fmt::format("{}\n  {}", lesson, what));
  };
  std::set<std::string> known;
  for (const fs::path& file : lesson_files()) known.insert(file.stem().string());
  for (const fs::path& file : every_language(names, language)) {
    Lesson lesson;
    try {
      lesson = read_lesson(file);
      if (!lesson.language.empty())
        for (const TranslationFault& each : translation_faults(read_lesson(original_of(file)), lesson))
          fault(file.stem().string(), 0, lesson.title,
                fmt::format("{}, line {}: {}", file.string(), each.line, each.what));
    } catch (const Error& error) {
      fault(file.stem().string(), 0, "", error.what());
      continue;
    }
    ++lessons;
    for (const std::string& each : lesson.needs)
      if (!known.contains(each)) fault(lesson.id, 0, lesson.title, "needs: there is no lesson \"" + each + "\"");
    int at = 0;
    const fs::path original = original_of(file);
    const bool translated = !lesson.language.empty() || !translations_of(original).empty();
    for (const LessonStep& step : lesson.steps) {
      ++at, ++steps;
      std::vector<std::string> faults;
      try {
        const auto run = translated ? runs.of(step.scene, original) : runs.of(step.scene);
        faults = faults_of(step, run);
        if (faults.empty())
          lesson_session(step.scene, tell(step, run), fmt::format("{}, line {}", file.string(), step.line));
      } catch (const Error& error) {
        faults.push_back(error.what());
      }
      for (const std::string& each : faults) fault(file.stem().string(), at, step.title, each);
      good += faults.empty();
    }
  }
  report.line(fmt::format("{} of {} steps in {} lessons are good", good, steps, lessons));
  report.data("faults", wrong);
  console.print(report.printed(output.form()));
  if (wrong > 0)
    throw Error("lesson check", "nothing wrong", fmt::format("{} {}", wrong, wrong == 1 ? "fault" : "faults"));
}

void list(Console& console, const LanguageOption& language, const Output& output) {
  Report report;
  auto& table = report.table("lessons", {"lesson", "title", "minutes", "level", "steps", "model", "languages"});
  // Scripts look titles up: they are the same on every system.
  const bool script = output.form() != Form::text && language.wanted.empty();
  const std::string titles = script ? "en" : language.language();
  std::string why_not;
  for (const fs::path& file : lesson_files()) {
    Lesson lesson;
    try {
      lesson = read_lesson_in(file, titles, why_not);
    } catch (const Error& error) {
      console.say(fmt::format("headscope-cli: {}", error.what()));
      continue;
    }
    const Cell minutes = lesson.minutes ? Cell(*lesson.minutes) : Cell();
    std::vector<std::string> languages{"en"};
    for (const fs::path& each : translations_of(file)) languages.push_back(language_of(each));
    table.add({lesson.id, lesson.title, minutes, lesson.level, lesson.steps.size(), lesson.scene.model,
               fmt::format("{}", fmt::join(languages, " "))});
  }
  if (!why_not.empty()) console.say("headscope-cli: " + why_not);
  console.print(report.printed(output.form()));
}

std::string indented(const std::string& text) {
  return "  " + text;
}

void show(Console& console, const std::string& name, const LanguageOption& language, const HandoutParts& with) {
  Runs runs(console);
  const Lesson lesson = language.read(console, named({name}).front());
  console.print_line(lesson.title);
  if (!lesson.about.empty()) console.print_line(lesson.about);
  int at = 0;
  for (const LessonStep& step : lesson.steps) {
    const auto run = runs.of(step.scene);
    const LessonTold told = tell(step, run);
    console.print_line(fmt::format("\n{}. {}", ++at, step.title));
    for (const std::string& each : told.prose) console.print_line("\n" + indented(each));
    if (with.notes)
      for (const std::string& each : told.notes) console.print_line("\n" + indented("> " + each));
    if (!step.question) continue;
    console.print_line("\n" + indented("Question: " + told.ask));
    for (const std::string& each : told.choices) console.print_line(indented("  ○ " + each));
    if (!with.answers) continue;
    const LessonReply answer = answered(step, run, any_guess(*step.question));
    console.print_line(indented((answer.truth.empty() ? "" : "Answer: " + answer.truth + ". ") + answer.because));
  }
}

void hand_out(Console& console, const std::string& name, const LanguageOption& language, const std::string& out,
              const HandoutParts& with, const std::string& paper) {
  const bool pdf = fs::path(out).extension() == ".pdf";
  if (!pdf && fs::path(out).extension() != ".html") throw UsageError("--out: a file that ends with .html or .pdf");
  if (!pdf && !paper.empty()) throw UsageError("--paper is for .pdf: a browser knows its printer's");
  expect_writable(out);
  expect_fonts();
  Runs runs(console);
  const Lesson lesson = language.read(console, named({name}).front());
  const PangoText measure;
  const Handout handout = lesson_handout(
      lesson, [&](const LessonScene& scene) { return runs.of(scene); }, with, Style{theme("print"), measure});
  write_file_atomically(out, pdf ? encode_handout_pdf(handout, paper == "letter" ? Paper::letter : Paper::a4)
                                 : encode_handout_html(handout));
  console.print_line(fmt::format("{}  {} steps", out, lesson.steps.size()));
}

void terms(Console& console, const Output& output) {
  Report report;
  auto& table = report.table("terms", {"term", "meaning"});
  for (const LessonTerm& each : lesson_terms()) table.add({each.form, each.meaning});
  console.print(report.printed(output.form()));
}
}  // namespace

void add_lesson(Command& app, Console& console) {
  struct Options {
    std::vector<std::string> files;
    std::string file, out, paper;
    HandoutParts with;
    LanguageOption language;
    Output output;
  };
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("lesson", "Lessons: list, check, show, export, and what their formulas may ask");
  Command listed = command.add_subcommand("list", "The lessons that there are");
  options->language.add_to(listed);
  options->output.add_to(listed);
  listed.does([options, &console] { list(console, options->language, options->output); });
  Command checked = command.add_subcommand("check", "Runs every step: what does not open, and what is not true");
  checked.add_option("lesson", options->files, "Files or names; none: all").type_name("FILE");
  options->language.add_to(checked);
  options->output.add_to(checked);
  checked.does([options, &console] { check(console, options->files, options->language, options->output); });
  Command shown = command.add_subcommand("show", "A lesson in words, with the numbers of the run");
  shown.add_option("lesson", options->file, "File or name").required().type_name("FILE");
  options->language.add_to(shown);
  shown.add_flag("--answers", options->with.answers, "With the answers");
  shown.add_flag("--notes", options->with.notes, "With the notes of who presents it");
  shown.does([options, &console] { show(console, options->file, options->language, options->with); });
  Command exported = command.add_subcommand("export", "A handout: prose, pictures as vectors, questions");
  exported.add_option("lesson", options->file, "File or name").required().type_name("FILE");
  exported.add_option("-o,--out", options->out, "The page, which a browser prints, or the pages themselves")
      .required()
      .type_name("FILE.html|.pdf");
  options->language.add_to(exported);
  exported.add_option("--paper", options->paper, "Of a .pdf: a4 (the usual) or letter")
      .check(one_of({"a4", "letter"}))
      .type_name("PAPER");
  exported.add_flag("--answers", options->with.answers, "With the answers");
  exported.add_flag("--notes", options->with.notes, "With the notes of who presents it");
  exported.does([options, &console] {
    hand_out(console, options->file, options->language, options->out, options->with, options->paper);
  });
  Command told = command.add_subcommand("terms", "What formulas of a lesson may ask of a run");
  options->output.add_to(told);
  told.does([options, &console] { terms(console, options->output); });
}

}  // namespace headscope::cli
