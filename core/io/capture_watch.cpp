#include "core/io/capture_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/words.h"
#include "core/trace/model_heads.h"

namespace headscope {

namespace fs = std::filesystem;

CaptureWatch::CaptureWatch(fs::path folder, RuleParser parse) : folder_(std::move(folder)), parse_(std::move(parse)) {}

bool CaptureWatch::look(double now, const std::function<void(const File&, std::shared_ptr<const Trace>)>& opened,
                        const std::stop_token& stop) {
  std::vector<Known> found;
  std::error_code failed;
  for (fs::directory_iterator at(folder_, failed), end; !failed && at != end; at.increment(failed)) {
    std::error_code gone;  // files come and go while we look
    const fs::path path = at->path();
    if (path.filename().string().starts_with(".") || !may_be_trace(path) || !fs::is_regular_file(path, gone)) continue;
    Known seen;
    seen.file.path = path;
    seen.file.written = fs::last_write_time(path, gone);
    seen.bytes = gone ? 0 : fs::file_size(path, gone);
    if (gone) continue;
    const auto before = std::ranges::find_if(known_, [&](const Known& known) { return known.file.path == path; });
    const bool as_it_was =
        before != known_.end() && before->file.written == seen.file.written && before->bytes == seen.bytes;
    if (as_it_was) {
      seen = *before;
    } else {
      seen.since = now;
      // What was being written and still changes is not tried before it rests.
      seen.tried = before != known_.end() && before->file.state != State::ready;
    }
    found.push_back(std::move(seen));
  }
  if (failed) throw Error(folder_.string(), "a folder that can be read", failed.message());
  std::ranges::sort(found, [](const Known& a, const Known& b) {
    return std::pair(a.file.written, a.file.path) < std::pair(b.file.written, b.file.path);
  });
  if (found.size() > most_files) found.erase(found.begin(), found.end() - most_files);
  for (Known& each : found) {
    if (stop.stop_requested()) throw Cancelled();
    const bool rests = now > each.since;
    if (each.file.state != State::writing || (each.tried && !rests)) continue;
    try {
      const auto trace = open_trace(each.file.path, parse_);
      each.file.state = State::ready;
      each.file.words = capture_words(*trace);
      if (opened) opened(each.file, trace);
    } catch (const Error& not_yet) {
      each.tried = true;
      if (now - each.since < patience) continue;
      each.file.state = State::broken;
      each.file.why = not_yet.what();
    }
  }
  known_ = std::move(found);
  std::vector<File> files;
  for (const Known& each : known_) files.push_back(each.file);
  std::ranges::reverse(files);
  const bool changed = files != files_;
  files_ = std::move(files);
  return changed;
}

Worded capture_words(const Trace& trace) {
  const ModelDims& dims = trace.model.dims;
  const std::size_t keys = trace.tokens.size();
  const Worded words = std::to_string(dims.layers) + " " +
                       Worded(dims.layers == 1 ? to_say("layer") : to_say("layers")) +
                       fmt::format(" × {} ", heads_text(dims)) +
                       (dims.most_heads() == 1 ? to_say("head") : to_say("heads")) + std::string(", ");
  if (trace.between_texts()) return words + say_later("{} × {} tokens", trace.query_tokens.size(), keys);
  if (trace.picture) return words + say_later("{} × {} patches", trace.picture->rows, trace.picture->columns);
  return words + std::to_string(keys) + std::string(" ") + Worded(keys == 1 ? to_say("token") : to_say("tokens"));
}

}  // namespace headscope
