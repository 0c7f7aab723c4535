#include "core/hub/pull.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/memory.h"
#include "core/base/words.h"
#include "core/hub/cache_entry.h"
#include "core/hub/digest.h"
#include "core/hub/file_choice.h"

namespace headscope {

namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;

/// Bytes in a second over the last few, so that a slow start is forgotten.
class Rate {
 public:
  void add(std::uint64_t bytes) {
    const Clock::time_point now = Clock::now();
    sum_ += bytes;
    if (!marks_.empty() && now - marks_.back().first < std::chrono::milliseconds(100)) {
      marks_.back().second = sum_;
      return;
    }
    marks_.emplace_back(now, sum_);
    while (marks_.size() > 2 && now - marks_.front().first > std::chrono::seconds(4)) marks_.pop_front();
  }
  double per_second() const {
    if (marks_.size() < 2) return 0;
    const double seconds = std::chrono::duration<double>(Clock::now() - marks_.front().first).count();
    return seconds > 0 ? static_cast<double>(sum_ - marks_.front().second) / seconds : 0;
  }

 private:
  std::deque<std::pair<Clock::time_point, std::uint64_t>> marks_;
  std::uint64_t sum_ = 0;
};

/// "bytes 100-199/200": where a part begins and how long the whole is; 0 of what is not said.
struct Part {
  std::uint64_t begin = 0, whole = 0;
};
std::optional<Part> part_of(const std::string& range) {
  Part part;
  unsigned long long begin = 0, end = 0, whole = 0;
  const int read = std::sscanf(range.c_str(), "bytes %llu-%llu/%llu", &begin, &end, &whole);
  if (read < 2) return std::nullopt;
  part.begin = begin;
  part.whole = read == 3 ? whole : 0;
  return part;
}

std::uint64_t size_of(const fs::path& file) {
  std::error_code gone;
  const std::uintmax_t size = fs::file_size(file, gone);
  return gone ? 0 : size;
}

class Pull {
 public:
  Pull(const HubSettings& settings, const PullRequest& request, const PullOptions& options, const std::stop_token& stop)
      : settings_(settings),
        request_(request),
        options_(options),
        stop_(stop),
        hub_(settings, options.patience, stop) {}

  Pulled run() {
    settings_.need_network(request_.model);
    if (settings_.cache.empty()) throw Error("HF_HOME", "a folder for the cache", "neither it nor HOME is set");
    tell(PullProgress::Phase::asking);
    model_ = hub_.model(request_.model, request_.revision, tries());
    FileChoice choice = choose_files(model_, request_.files);
    entry_.emplace(settings_.cache, model_.name);
    out_ = {model_.name, request_.revision, model_.commit, entry_->snapshot(model_.commit), {}, 0, choice.remarks};
    at_.of = choice.files.size();
    for (const HubFile& file : choice.files) at_.total += file.size.value_or(0);
    need_room(choice.files);
    for (const HubFile& file : choice.files) {
      if (stop_.stop_requested()) throw Cancelled();
      at_.file = file.name;
      ++at_.number;
      at_.file_done = 0;
      at_.file_total = file.size.value_or(0);
      const std::uint64_t before = at_.done;
      PulledFile pulled = one(file);
      at_.done = before + pulled.bytes;
      at_.total = std::max(at_.total, at_.done);
      out_.files.push_back(std::move(pulled));
    }
    // Last, so that a name never leads to half a model.
    entry_->write_ref(request_.revision, model_.commit);
    return std::move(out_);
  }

 private:
  HubTries tries() {
    return HubTries(options_.patience, stop_, [this](const std::string& why) {
      at_.remark = why;
      tell(PullProgress::Phase::waiting);
    });
  }

  void tell(PullProgress::Phase phase) {
    at_.phase = phase;
    at_.rate = rate_.per_second();
    if (phase != PullProgress::Phase::waiting) at_.remark.clear();
    told_ = Clock::now();
    if (options_.progress) options_.progress(at_);
  }
  void tell_now_and_then() {
    if (Clock::now() - told_ > std::chrono::milliseconds(80)) tell(PullProgress::Phase::fetching);
  }

  /// What is missing has to fit on the disk. Links and rounding are not counted: it is a promise of trouble, no
  /// account.
  void need_room(const std::vector<HubFile>& files) const {
    std::uint64_t wanted = 0;
    std::error_code gone;
    for (const HubFile& file : files) {
      const bool linked = !file.digest.empty() && fs::exists(entry_->blob(file.digest), gone);
      if (!linked && !fs::exists(out_.folder / file.name, gone)) wanted += file.size.value_or(0);
    }
    for (const auto& part : fs::directory_iterator(entry_->folder() / "blobs", gone))
      if (part.path().extension() == ".incomplete") wanted -= std::min(wanted, size_of(part.path()));
    fs::path place = settings_.cache;
    while (!fs::exists(place, gone) && place.has_relative_path() && place != place.parent_path())
      place = place.parent_path();
    const fs::space_info room = fs::space(place, gone);
    if (!gone && room.available < wanted)
      throw Error(settings_.cache.string(), "room for " + memory_text(static_cast<double>(wanted)),
                  memory_text(static_cast<double>(room.available)) + " free",
                  "make room, or let HF_HOME name a folder on another disk");
  }

  PulledFile one(const HubFile& file) {
    std::error_code gone;
    PulledFile pulled{PulledFile::How::here, file.name, "", 0};
    const fs::path at = out_.folder / file.name;
    if (fs::is_regular_file(at, gone)) {
      pulled.bytes = size_of(at);
      pulled.tag = fs::is_symlink(at, gone) ? fs::read_symlink(at, gone).filename().string() : "";
      if (file.size && *file.size != pulled.bytes)
        out_.remarks.push_back(say("{} has {} bytes, at the hub it has {}: to fetch it again, remove it.", at.string(),
                                   pulled.bytes, *file.size));
      return pulled;
    }
    tell(PullProgress::Phase::asking);
    HubTries tries = this->tries();
    for (;;) {
      try {
        const HubFileFacts facts = hub_.facts(model_, file.name);
        if (!pulled.tag.empty() && pulled.tag != facts.tag) fs::remove(entry_->incomplete(pulled.tag), gone);
        pulled.tag = facts.tag;
        at_.file_total = facts.size.value_or(at_.file_total);
        entry_->make_folders(model_.commit, file.name);
        const CacheLock lock(entry_->lock(facts.tag), stop_, [this] {
          at_.remark = said("another program fetches this file");
          tell(PullProgress::Phase::waiting);
        });
        if (fs::is_regular_file(entry_->blob(facts.tag), gone)) {
          if (pulled.how == PulledFile::How::here) pulled.how = PulledFile::How::linked;
        } else {
          fetch(file, facts, tries, pulled);
        }
        pulled.bytes = size_of(entry_->blob(facts.tag));
        entry_->link(model_.commit, file.name, facts.tag);
        return pulled;
      } catch (const HttpError& error) {
        tries.failed(error);
      }
    }
  }

  /// One try of a file's bytes, from where the last one ended; throws HttpError when it did not get to their end.
  void fetch(const HubFile& file, const HubFileFacts& facts, HubTries& tries, PulledFile& pulled) {
    const fs::path part = entry_->incomplete(facts.tag);
    GrowingFile out(part);
    if (facts.size && out.size() > *facts.size) out.cut(0);
    const std::uint64_t from = out.size();
    const std::uint64_t before = at_.done - std::min(at_.done, at_.file_done);
    bool whole = from == 0;  // it is fetched from its first byte on
    const auto arrived = [&] {
      at_.file_done = out.size();
      at_.done = before + out.size();
      at_.total = std::max(at_.total, at_.done);
    };
    arrived();
    tell(PullProgress::Phase::fetching);
    const std::string where = file.name + " of " + model_.name;
    HttpSink sink;
    sink.begin = [&](const HttpReply& reply) {
      if (from == 0 || reply.status != 206) {  // all of it, also when a part was asked for
        if (from > 0) out.cut(0);
        whole = true;
        return;
      }
      const std::optional<Part> range = part_of(reply.header("content-range"));
      if (range && range->begin == from && (range->whole == 0 || !facts.size || range->whole == *facts.size)) return;
      out.cut(0);
      throw HttpError(where, fmt::format("its bytes from {} on", from),
                      "'" + excerpt(reply.header("content-range"), 80) + "'", "", true);
    };
    sink.bytes = [&](std::span<const std::byte> bytes) {
      if (facts.size && out.size() + bytes.size() > *facts.size)
        throw HttpError(where, fmt::format("{} bytes", *facts.size), "more", "try again later", false);
      out.append(bytes);
      out_.fetched += bytes.size();
      rate_.add(bytes.size());
      tries.progressed(out.size());
      arrived();
      tell_now_and_then();
    };
    const bool complete = facts.size && from == *facts.size && from > 0;
    if (!complete) {
      try {
        hub_.fetch(model_, file.name, facts.tag, from, sink);
      } catch (const HttpError& error) {
        if (error.status != 416 || from == 0) throw;
        out.cut(0);  // the server has no such part: from the start
        throw HttpError(error.where, error.expected, error.found, error.hint, true);
      }
    }
    pulled.how = from > 0 && !whole ? PulledFile::How::resumed : PulledFile::How::fetched;
    if (facts.size && out.size() != *facts.size)
      throw HttpError(where, fmt::format("{} bytes", *facts.size), fmt::format("{}", out.size()), "try again later",
                      true);
    check(out, part, facts.tag, where, whole);
    out.finish(entry_->blob(facts.tag));
  }

  /// Whether what came is what the hub calls it. What is not is not kept; where only its end is new, its start may be
  /// to blame, and all of it is fetched again.
  void check(GrowingFile& out, const fs::path& part, const std::string& tag, const std::string& where, bool whole) {
    const DigestKind kind = digest_kind(tag);
    if (kind == DigestKind::none) {
      out_.remarks.push_back(
          say("{} could not be checked: the server calls it {}, which is no digest.", where, excerpt(tag, 70)));
      return;
    }
    tell(PullProgress::Phase::checking);
    std::string found = digest_of_file(part, kind, stop_);
    if (found == tag) return;
    out.cut(0);
    throw HttpError(where, (kind == DigestKind::sha256 ? "SHA-256 " : "Git's SHA-1 ") + tag, found,
                    whole ? "what came was thrown away; is a proxy on the way, or a broken copy at HF_ENDPOINT?" : "",
                    !whole);
  }

  const HubSettings& settings_;
  const PullRequest& request_;
  const PullOptions& options_;
  const std::stop_token& stop_;
  HubClient hub_;
  HubModel model_;
  std::optional<CacheEntry> entry_;
  Pulled out_;
  PullProgress at_;
  Rate rate_;
  Clock::time_point told_{};
};

}  // namespace

PullRequest PullRequest::parse(const std::string& text) {
  PullRequest request;
  const std::size_t at = text.find('@');
  request.model = text.substr(0, at);
  if (at != std::string::npos) request.revision = text.substr(at + 1);
  check_model_name(request.model);
  check_revision(request.revision);
  return request;
}

Pulled pull(const HubSettings& settings, const PullRequest& request, const PullOptions& options,
            const std::stop_token& stop) {
  return Pull(settings, request, options, stop).run();
}

}  // namespace headscope
