#include "core/hub/hub_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "core/base/excerpt.h"
#include "core/base/json.h"
#include "core/base/words.h"
#include "core/hub/digest.h"
#include "core/io/json_view.h"
#include "core/io/strict_json.h"

namespace headscope {

namespace {

constexpr int most_redirects = 10;
constexpr std::size_t most_files = 100'000, longest_name = 1000;
/// Said on the way to a file's bytes, perhaps not by the last server.
constexpr const char* linked_tag = "x-linked-etag";
constexpr const char* kept_headers[] = {"x-repo-commit", linked_tag, "x-linked-size"};

bool is_word(const std::string& text) {
  const auto plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' ||
           c == '.';
  };
  return !text.empty() && std::ranges::all_of(text, plain) && text.find("--") == std::string::npos &&
         text.find("..") == std::string::npos && std::string_view("-.").find(text.front()) == std::string_view::npos &&
         std::string_view("-.").find(text.back()) == std::string_view::npos;
}

/// Of words between slashes, none of which leads anywhere but down; "" is none.
bool stays_below(const std::string& path) {
  if (path.empty() || path.size() > longest_name || path.front() == '/' || path.back() == '/') return false;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return std::ranges::none_of(path, [](char c) { return (c >= 0 && c < ' ') || c == '\\' || c == '\x7f'; });
}

bool is_commit(const std::string& text) {
  return text.size() == 40 &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

/// W/"abc" → abc. It becomes a file's name.
std::string plain_tag(std::string tag) {
  if (tag.starts_with("W/")) tag.erase(0, 2);
  std::erase(tag, '"');
  return tag;
}

std::optional<std::uint64_t> number(const std::string& text) {
  if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::strtoull(text.c_str(), nullptr, 10);
}

bool redirects(long status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

bool is_transient(long status) {
  return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

}  // namespace

void check_model_name(const std::string& name) {
  const std::size_t slash = name.find('/');
  if (name.size() > 96 || slash == std::string::npos || !is_word(name.substr(0, slash)) ||
      !is_word(name.substr(slash + 1)))
    throw Error("model", "org/name, as in the address of its page", "'" + excerpt(name, 100) + "'",
                "such as openai-community/gpt2");
}

void check_revision(const std::string& revision) {
  if (!stays_below(revision) || revision.size() > 200 || revision.find_first_of(" ~^:?*[") != std::string::npos)
    throw Error("revision", "a branch, a tag or a commit", "'" + excerpt(revision, 100) + "'");
}

void HubTries::failed(const HttpError& error) {
  ++in_a_row_, ++all_;
  if (!error.transient || in_a_row_ >= patience_.tries || all_ >= patience_.most) throw error;
  const double doubled = patience_.first_wait * static_cast<double>(1 << std::min(in_a_row_ - 1, 20));
  const double seconds = std::max(std::min(doubled, patience_.longest_wait), std::min(error.wait, 60.0));
  if (waiting_) waiting_(say("{}; trying again", error.found));
  std::mutex lock;
  std::condition_variable_any stopped;
  std::unique_lock hold(lock);
  stopped.wait_for(hold, stop_, std::chrono::duration<double>(seconds), [] { return false; });
  if (stop_.stop_requested()) throw Cancelled();
}

HttpReply HubClient::follow(HttpRequest request, bool elsewhere, const HttpSink* sink) {
  request.token = settings_.token;
  std::map<std::string, std::string> said;
  bool home = true;
  const auto with_said = [&](HttpReply& reply) {
    for (const char* name : kept_headers) {
      const std::string value = reply.header(name);
      reply.headers.erase(name);
      if (home && !value.empty()) said[name] = value;
    }
    if (home && !said.contains(linked_tag) && reply.ok()) said[linked_tag] = reply.header("etag");
    for (const auto& [name, value] : said) reply.headers[name] = value;
  };
  HttpSink passing;
  if (sink) {
    passing.begin = [&](const HttpReply& reply) {
      HttpReply whole = reply;
      with_said(whole);
      sink->begin(whole);
    };
    passing.bytes = sink->bytes;
  }
  for (int hop = 0; hop <= most_redirects; ++hop) {
    HttpReply reply = http_.send(request, stop_, sink ? &passing : nullptr);
    with_said(reply);
    if (!redirects(reply.status)) return reply;
    const std::string to = resolved_url(request.url, reply.header("location"));
    const bool stays = same_origin(to, settings_.endpoint);
    if (!stays && !elsewhere) return reply;
    if (request.url.starts_with("https://") && !to.starts_with("https://"))
      throw HttpError(shown_url(request.url), "a redirect to an encrypted address", shown_url(to), "", false);
    if (!stays) {
      home = false;
      request.token.clear();  // and it does not come back
    }
    request.url = to;
  }
  throw HttpError(shown_url(request.url), fmt::format("at most {} redirects", most_redirects), "more", "", false);
}

void HubClient::refuse(const HttpReply& reply, const std::string& url, const std::string& model,
                       const std::string& expected) const {
  const std::string code = reply.header("x-error-code"), said = reply.header("x-error-message");
  std::string found = reply.status_text();
  if (!said.empty()) found += ": " + excerpt(said, 140);
  const bool known = !settings_.token.empty();
  const std::string page_of_it = page(model);
  std::string hint;
  if (code == "GatedRepo" || reply.status == 403)
    hint = known ? "your token may not read it: accept its terms at " + page_of_it +
                       ", and see that the token may read gated models"
                 : "its owner asks who reads it: accept its terms at " + page_of_it +
                       ", and set HF_TOKEN to a token of your account";
  else if (code == "RevisionNotFound")
    hint = "its branches and tags are listed at " + page_of_it + "/tree/main";
  else if (code == "EntryNotFound")
    hint = "its files are listed at " + page_of_it + "/tree/main";
  else if (reply.status == 401)
    hint =
        known ? "there is no such model, or your token may not read it; is it spelled as at " + page_of_it + "?"
              : "there is no such model, or it is private: check the name, or set HF_TOKEN to a token that may read it";
  else if (reply.status == 404)
    hint = "check the name and the revision: " + page_of_it;
  else if (reply.status == 429)
    hint = "too many requests from here: try again later, or set HF_TOKEN";
  else if (is_transient(reply.status))
    hint = "the server has a problem of its own: try again later";
  HttpError error(shown_url(url), expected, found, hint, is_transient(reply.status));
  error.status = reply.status;
  error.wait = static_cast<double>(number(reply.header("retry-after")).value_or(0));
  throw error;
}

HubModel HubClient::model(const std::string& name, const std::string& revision, HubTries tries) {
  check_model_name(name);
  check_revision(revision);
  HttpRequest request;
  request.url =
      fmt::format("{}/api/models/{}/revision/{}?blobs=true", settings_.endpoint, name, url_escaped(revision, false));
  const std::string where = shown_url(request.url);
  HttpReply reply;
  for (bool done = false; !done;) {
    try {
      reply = follow(request, false);
      if (redirects(reply.status))
        throw HttpError(where, "an answer of the endpoint", "a redirect to another server",
                        "set HF_ENDPOINT to that server if you trust it", false);
      if (!reply.ok()) refuse(reply, request.url, name, fmt::format("the files of {} at {}", name, revision));
      done = true;
    } catch (const HttpError& error) {
      tries.failed(error);
    }
  }
  const nlohmann::json document = parse_strict_json(reply.body, where, 32);
  const JsonView view(document, where);
  HubModel model;
  model.name = view.text_or("id", name);
  check_model_name(model.name);
  const JsonView sha = view.at("sha");
  model.commit = sha.text();
  if (!is_commit(model.commit)) sha.refuse("a commit of 40 hexadecimal digits");
  for (const JsonView& file : view.at("siblings").elements("files", 0, most_files)) {
    const JsonView path = file.at("rfilename");
    if (!stays_below(path.text())) path.refuse("the name of a file below the model's folder");
    HubFile one{path.text(), std::nullopt};
    if (const auto size = file.find("size")) one.size = size->natural();
    const auto large = file.find("lfs");
    const std::string digest = large ? large->text_or("sha256", "") : file.text_or("blobId", "");
    if (digest_kind(digest) != DigestKind::none) one.digest = digest;
    model.files.push_back(std::move(one));
  }
  return model;
}

namespace {
std::string file_url(const HubSettings& settings, const HubModel& model, const std::string& file) {
  return fmt::format("{}/{}/resolve/{}/{}", settings.endpoint, model.name, model.commit, url_escaped(file, true));
}

HubFileFacts facts_of(const HttpReply& reply) {
  HubFileFacts facts{plain_tag(reply.header(linked_tag)), number(reply.header("x-linked-size"))};
  // A redirect's own length is that of its page.
  if (!facts.size && reply.ok()) facts.size = number(reply.header("content-length"));
  return facts;
}
}  // namespace

HubFileFacts HubClient::facts(const HubModel& model, const std::string& file) {
  HttpRequest request;
  request.method = HttpRequest::Method::head;
  request.url = file_url(settings_, model, file);
  const HttpReply reply = follow(request, false);
  if (!reply.ok() && !redirects(reply.status)) refuse(reply, request.url, model.name, "the file " + excerpt(file));
  HubFileFacts facts = facts_of(reply);
  if (const std::string commit = reply.header("x-repo-commit"); !commit.empty() && commit != model.commit)
    throw HttpError(shown_url(request.url), "the file of commit " + model.commit, "that of " + excerpt(commit, 60), "",
                    false);
  const bool plain = !facts.tag.empty() && facts.tag.size() <= 128 && facts.tag.front() != '.' &&
                     facts.tag.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_.") ==
                         std::string::npos;
  if (!plain)
    throw HttpError(shown_url(request.url), "a header X-Linked-Etag or ETag that names the content",
                    facts.tag.empty() ? "none" : "'" + excerpt(facts.tag, 60) + "'", "is HF_ENDPOINT a hub of models?",
                    false);
  return facts;
}

void HubClient::fetch(const HubModel& model, const std::string& file, const std::string& tag, std::uint64_t from,
                      const HttpSink& sink) {
  HttpRequest request;
  request.url = file_url(settings_, model, file);
  request.from = from;
  HttpSink checked = sink;
  checked.begin = [&](const HttpReply& reply) {
    const std::string now = facts_of(reply).tag;
    if (!now.empty() && now != tag)
      throw HttpError(shown_url(request.url), "the content " + tag, "that it has become " + excerpt(now, 80), "", true);
    sink.begin(reply);
  };
  const HttpReply reply = follow(request, true, &checked);
  if (!reply.ok()) refuse(reply, request.url, model.name, "the file " + excerpt(file));
}

}  // namespace headscope
