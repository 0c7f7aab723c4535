#include "tests/support/fake_hub.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>

#include "core/base/file.h"
#include "core/hub/digest.h"

namespace headscope::testing {

FakeHub::FakeHub()
    : revisions{{"main", first_commit}},
      store_([this](const Asked& asked) { return answer_stored(asked); }),
      hub_([this](const Asked& asked) { return answer(asked); }) {}

std::string FakeHub::tag_of(const File& file) const {
  if (!file.tag.empty()) return file.tag;
  Digest digest = file.large ? Digest::sha256() : Digest::git_blob(file.content.size());
  digest.add(std::as_bytes(std::span(file.content)));
  return digest.hex();
}

void FakeHub::take_folder(const std::string& folder, std::size_t large) {
  for (const auto& item : std::filesystem::directory_iterator(folder))
    if (item.is_regular_file()) {
      std::string text = read_file(item.path());
      const bool is_large = text.size() > large;
      files[item.path().filename().string()] = {std::move(text), is_large};
    }
}

std::vector<std::string> FakeHub::targets() const {
  std::vector<std::string> all;
  for (const HttpServer* server : {&hub_, &store_})
    for (const Asked& asked : server->asked()) all.push_back(asked.method + " " + asked.target);
  return all;
}

void FakeHub::forget() {
  hub_.forget();
  store_.forget();
}

Answered FakeHub::content(const std::string& file, const Asked& asked,
                          std::vector<std::pair<std::string, std::string>> with) {
  const std::string& bytes = files.at(file).content;
  Answered says{200, std::move(with), bytes};
  unsigned long long from = 0;
  if (std::sscanf(asked.header("range").c_str(), "bytes=%llu-", &from) == 1 && !ignores_ranges) {
    if (from >= bytes.size()) return {416, {{"Content-Range", fmt::format("bytes */{}", bytes.size())}}};
    says.status = 206;
    says.body = bytes.substr(from);
    says.headers.emplace_back("Content-Range", fmt::format("bytes {}-{}/{}", from, bytes.size() - 1, bytes.size()));
  }
  if (asked.method == "GET")
    if (auto& broken = break_after[file]; !broken.empty()) {
      says.sent = broken.front();
      broken.erase(broken.begin());
    }
  if (files.at(file).large) says.pause_ms = pause_ms;
  return says;
}

Answered FakeHub::answer_stored(const Asked& asked) {
  const std::lock_guard hold(both_);
  const std::string prefix = "/store/";
  const std::string file = asked.target.substr(prefix.size(), asked.target.find('?') - prefix.size());
  if (!files.contains(file)) return {404};
  // A store's own tag is none of the content.
  return content(file, asked, {{"ETag", "\"of-the-store\""}, {"X-Linked-Etag", "\"a lie\""}});
}

Answered FakeHub::answer(const Asked& asked) {
  const std::lock_guard hold(both_);
  for (auto& [begin, codes] : statuses)
    if (asked.target.starts_with(begin) && !codes.empty()) {
      const int status = codes.front();
      codes.erase(codes.begin());
      if (status != 200)
        return {status, {{"X-Error-Code", error_code[begin]}, {"X-Error-Message", "so it is"}}, "<html>"};
    }
  if (!token.empty() && asked.header("authorization") != "Bearer " + token)
    return {401, {{"X-Error-Code", "GatedRepo"}, {"X-Error-Message", "Access to it is restricted"}}};

  const std::string api = "/api/models/" + name + "/revision/", resolve = "/" + name + "/resolve/";
  if (asked.target.starts_with(api)) {
    const std::string revision = asked.target.substr(api.size(), asked.target.find('?') - api.size());
    const auto commit = [&]() -> std::string {
      if (const auto found = revisions.find(revision); found != revisions.end()) return found->second;
      for (const auto& [branch, at] : revisions)
        if (at == revision) return at;
      return "";
    }();
    if (commit.empty()) return {404, {{"X-Error-Code", "RevisionNotFound"}, {"X-Error-Message", "Invalid rev id"}}};
    nlohmann::json list{{"id", name}, {"modelId", name}, {"sha", commit}, {"siblings", nlohmann::json::array()}};
    for (const auto& [file, is] : files) {
      nlohmann::json one{{"rfilename", file}};
      if (!no_sizes) one["size"] = is.content.size();
      if (!no_sizes && is.large)
        one["lfs"] = {{"sha256", tag_of(is)}, {"size", is.content.size()}, {"pointerSize", 130}};
      list["siblings"].push_back(one);
    }
    return {200, {{"Content-Type", "application/json"}}, list.dump()};
  }
  if (asked.target.starts_with(resolve)) {
    const std::string rest = asked.target.substr(resolve.size());
    const std::size_t slash = rest.find('/');
    std::string commit = rest.substr(0, slash);
    if (const auto found = revisions.find(commit); found != revisions.end()) commit = found->second;
    const std::string file = rest.substr(slash + 1);
    if (!files.contains(file)) return {404, {{"X-Error-Code", "EntryNotFound"}, {"X-Error-Message", "no such file"}}};
    const File& is = files.at(file);
    const std::string tag = "\"" + tag_of(is) + "\"";
    if (is.large)
      return {302,
              {{"Location", store_.url() + "/store/" + file + "?signature=secret"},
               {"X-Repo-Commit", commit},
               {"X-Linked-Etag", tag},
               {"X-Linked-Size", std::to_string(is.content.size())}},
              "Found"};
    return content(file, asked, {{"ETag", "W/" + tag}, {"X-Repo-Commit", commit}});
  }
  return {401, {{"X-Error-Code", "RepoNotFound"}, {"X-Error-Message", "Repository not found"}}};
}

}  // namespace headscope::testing
