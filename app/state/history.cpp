#include "app/state/history.h"

#include <utility>

namespace headscope {

namespace {
constexpr double merge_seconds = 1;
}

void History::record(const Document& before, const std::string& merge_key, double now) {
  const bool same_step = !merge_key.empty() && merge_key == merge_key_ && (held_ || now - last_ < merge_seconds) &&
                         !undo_.empty() && redo_.empty();
  merge_key_ = merge_key;
  last_ = now;
  redo_.clear();
  if (same_step) return;
  undo_.push_back(before);
  if (undo_.size() > limit_) undo_.pop_front();
}

bool History::step(std::deque<Document>& from, std::deque<Document>& to, Document& current) {
  if (from.empty()) return false;
  to.push_back(std::exchange(current, std::move(from.back())));
  from.pop_back();
  return true;
}

bool History::undo(Document& current) {
  close_step();
  return step(undo_, redo_, current);
}

bool History::redo(Document& current) {
  close_step();
  return step(redo_, undo_, current);
}

std::vector<const Document*> History::documents(const Document& current) const {
  std::vector<const Document*> all;
  for (const Document& each : undo_) all.push_back(&each);
  all.push_back(&current);
  for (auto each = redo_.rbegin(); each != redo_.rend(); ++each) all.push_back(&*each);
  return all;
}

void History::clear() {
  undo_.clear();
  redo_.clear();
  close_step();
}

}  // namespace headscope
