// headscope-cli pull: fetches a model into the Hugging Face cache. The one command that uses the network.

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "app/cli/commands.h"
#include "app/cli/report.h"
#include "app/cli/table_text.h"
#include "app/model_places.h"
#include "core/base/duration.h"
#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/memory.h"
#include "core/base/nearest_names.h"
#include "core/base/standard_streams.h"
#include "core/hub/manifest.h"
#include "core/hub/pull.h"
#include "core/model/formats/found_models.h"
#include "core/trace/model_heads.h"

namespace headscope::cli {

namespace {

std::vector<ManifestEntry> manifest() {
  const auto file = manifest_file();
  return file ? read_manifest(*file) : std::vector<ManifestEntry>();
}

Report list_report() {
  Report out;
  Report::Table& table = out.table("models", {"model",
                                              "family",
                                              {"parameters", "parameters"},
                                              only_in(Form::scripts, "bytes"),
                                              for_people("size, about"),
                                              "licence",
                                              only_in(Form::scripts, "gated"),
                                              {"here", "here"},
                                              {"why", "what for"}});
  for (const ManifestEntry& entry : manifest()) {
    const InCache here = in_cache(entry.name);
    table.add({entry.name, entry.family, entry.parameters, entry.bytes, memory_text(static_cast<double>(entry.bytes)),
               entry.gated ? entry.licence + " (gated)" : entry.licence, entry.gated,
               here == InCache::model  ? "yes"
               : here == InCache::part ? "in part"
                                       : "no",
               entry.why});
  }
  if (table.rows.empty()) out.line("the list of models was not installed");
  out.line("headscope-cli pull MODEL fetches one; gated: accept its terms on its page first, and set HF_TOKEN.");
  return out;
}

const char* words(PulledFile::How how) {
  switch (how) {
    case PulledFile::How::here:
      return "here already";
    case PulledFile::How::linked:
      return "here under another revision";
    case PulledFile::How::fetched:
      return "fetched";
    case PulledFile::How::resumed:
      break;
  }
  return "fetched from where it was broken off";
}

Report pulled_report(const Pulled& pulled, const std::stop_token& stop) {
  Report out;
  out.facts({{"model", "model", pulled.model},
             {"revision", "revision", pulled.revision},
             {"commit", "commit", pulled.commit},
             {"folder", "folder", pulled.folder.string()}});
  Report::Table& table = out.table(
      "files",
      {"file", only_in(Form::scripts, "bytes"), for_people("size"), only_in(Form::scripts, "etag"), {"how", ""}});
  for (const PulledFile& file : pulled.files)
    table.add({excerpt(file.name, 80), file.bytes, byte_size(file.bytes), file.tag, words(file.how)});
  out.data("fetched_bytes", pulled.fetched);
  // By names of tensors, as `models` does.
  const FoundModels found = find_models(pulled.folder, stop);
  bool opens = false;
  for (const FoundModel& model : found.models) {
    if (model.refusal.empty())
      out.line(fmt::format("It opens: {}, {} × {} heads.", model.family, model.dims.layers, heads_text(model.dims)));
    else
      out.line("It does not open: " + model.refusal);
    opens = opens || model.refusal.empty();
  }
  for (const std::string& remark : pulled.remarks) out.line(remark);
  out.data("opens", opens);
  if (opens)
    out.line(fmt::format("headscope-cli run -m {} -t \"…\"",
                         pulled.revision == "main" ? pulled.model : pulled.model + "@" + pulled.revision));
  return out;
}

/// One line on a terminal that is drawn over again; nothing anywhere else.
class ProgressLine {
 public:
  void show(const PullProgress& at) {
    if (!terminal_) return;
    std::string line = fmt::format("{}/{} {}", at.number, at.of, excerpt(at.file, 40));
    if (at.number == 0) line = "asking";
    if (at.phase == PullProgress::Phase::checking) line += "  checking";
    if (at.phase == PullProgress::Phase::waiting) line += "  " + at.remark;
    if (at.phase == PullProgress::Phase::fetching) {
      line += "  " + byte_size(at.done);
      if (at.total > 0)
        line += fmt::format(" of {} ({:.0f} %)", byte_size(at.total),
                            100 * static_cast<double>(at.done) / static_cast<double>(at.total));
      if (at.rate > 0) {
        line += fmt::format("  {}/s", byte_size(static_cast<std::uint64_t>(at.rate)));
        if (at.total > at.done)
          line += "  " + duration_text(static_cast<double>(at.total - at.done) / at.rate) + " left";
      }
    }
    write_error("\r\033[K" + excerpt(line, width() - 1));
    shown_ = true;
  }
  ~ProgressLine() {
    if (shown_) write_error("\r\033[K");
  }

 private:
  static std::size_t width() {
    winsize size{};
    return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
  }
  const bool terminal_ = isatty(STDERR_FILENO);
  bool shown_ = false;
};

struct PullOptions {
  std::string model, revision;
  std::vector<std::string> files;
  bool list = false, csv = false, json = false;
};

PullRequest request_of(const PullOptions& options) {
  if (options.model.find('/') == std::string::npos) {
    std::vector<std::string> names;
    for (const ManifestEntry& entry : manifest()) names.push_back(entry.name);
    throw Error("model", "org/name, as in the address of its page", "'" + excerpt(options.model, 100) + "'",
                nearest_names_hint(options.model, names));
  }
  PullRequest request = PullRequest::parse(options.model);
  if (!options.revision.empty()) {
    if (options.model.find('@') != std::string::npos && request.revision != options.revision)
      throw UsageError("--revision and @ name two revisions of the model");
    check_revision(options.revision);
    request.revision = options.revision;
  }
  request.files = options.files;
  return request;
}

}  // namespace

void add_pull(Command& app, Console& console) {
  auto options = std::make_shared<PullOptions>();
  Command command =
      app.add_subcommand("pull", "Fetch a model into the Hugging Face cache; no other command goes online");
  command.add_option("model", options->model, "org/name or org/name@revision, as on its page");
  command.add_option("--revision", options->revision, "A branch, a tag or a commit (default: main)").type_name("NAME");
  command
      .add_option("--file", options->files,
                  "These files alone, \"*.Q4_K_M.gguf\"; may be given again (default: configuration, tokenizer and "
                  "weights)")
      .type_name("PATTERN")
      .take_all();
  command.add_flag("--list", options->list, "Models worth beginning with, and which are here");
  const Option csv = command.add_flag("--csv", options->csv, "CSV instead of a table");
  command.add_flag("--json", options->json, "JSON instead of a table").excludes(csv);
  command.does([options, &console] {
    const Form form = options->json ? Form::json : options->csv ? Form::csv : Form::text;
    if (options->list) return console.print(list_report().printed(form));
    if (options->model.empty()) throw UsageError("pull: name a model, org/name; --list names some");
    const PullRequest request = request_of(*options);
    const HubSettings settings = HubSettings::from_environment();
    const std::stop_token stop = console.stop();
    try {
      Pulled pulled;
      {
        ProgressLine line;
        pulled = pull(settings, request, {.progress = [&](const PullProgress& at) { line.show(at); }}, stop);
      }
      console.print(pulled_report(pulled, stop).printed(form));
    } catch (const Cancelled&) {
      console.say("What has come stays; the same command goes on from there.");
      throw;
    }
  });
}

}  // namespace headscope::cli
