#pragma once
// What is known of one question that is put to the worker: it is asked when what it depends on has changed,
// and until the answer has come, the last one stays and is known to be old. Thread rule: the UI thread.

#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "app/state/job_runner.h"
#include "core/base/error.h"
#include "core/base/words.h"
#include "core/model/model.h"

namespace headscope {

/// What an answer says besides numbers. One that holds words is composed anew once the window speaks another language.
enum class Holds { words, numbers };

/// `Key`: everything that the answer depends on but the language, a struct with ==. It owns what it names by address,
/// as a shared_ptr, so that no other object can be given that address.
template <class Key, class Result>
class Answer {
 public:
  enum class State {
    none,       ///< nothing is known
    under_way,  ///< nothing is known yet
    current,    ///< last() answers what was asked last
    old,        ///< last() answers something that was asked before
    failed      ///< what was asked last has no answer: error(). last() may be old
  };
  enum class OnFailure { tell, keep };  ///< as the message; for error() alone

  /// No two answers share a tag.
  explicit Answer(JobName job, OnFailure on_failure = OnFailure::tell, Holds holds = Holds::words)
      : job_(std::move(job)), on_failure_(on_failure), holds_(holds) {}
  Answer(JobName job, Holds holds) : Answer(std::move(job), OnFailure::tell, holds) {}
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;

  /// Asks for make(const Ctx&), a Result or a shared one, unless `key` was asked last: then its answer is here or under
  /// way, or it failed, or was stopped (JobRunner::run_again() takes it up). The key of last() needs no asking.
  template <class Make>
  void want(JobRunner& jobs, Key key, Make make) {
    if (asked_for(key)) return;
    shared_->asked = key;
    shared_->asked_words = words();
    shared_->error.reset();
    if (answers()) return stop(jobs);
    shared_->under_way = true;
    jobs.submit(
        job_,
        [&jobs, key = std::move(key), words = words(), make = std::move(make), tag = job_.tag, how = on_failure_,
         slot = std::weak_ptr(shared_), backend = jobs.backend()](Worker::Job& job) -> Worker::Deliver {
          std::shared_ptr<const Result> made;
          std::optional<std::string> error;
          try {
            made = share(make(Ctx{.backend = *backend, .stop = job.stop, .progress = &job.progress}));
          } catch (const Cancelled&) {
            throw;
          } catch (const CardError&) {  // for JobRunner, which takes the processor
            throw;
          } catch (const std::bad_alloc&) {
            error = "out of memory";
          } catch (const std::exception& wrong) {
            error = wrong.what();
          }
          return [&jobs, key, words, made, error, tag, how, slot] {
            const auto shared = slot.lock();
            if (!shared || shared->asked != key || shared->asked_words != words) return;
            shared->under_way = false;
            shared->error = error;
            if (!error) {
              shared->known = made;
              shared->of = key;
              shared->of_words = words;
            } else if (how == OnFailure::tell) {
              jobs.show({Message::Level::error, *error, tag});
            }
          };
        },
        JobRunner::OnStop::again,
        [key, slot = std::weak_ptr(shared_)] {
          const auto shared = slot.lock();
          if (!shared || shared->asked != key) return;
          shared->under_way = false;
          shared->error =
              said("Another device computes now.");  // for which the model is opened again: another question
        });
  }
  bool asked_for(const Key& key) const { return shared_->asked == key && shared_->asked_words == words(); }
  /// What was asked last.
  const std::optional<Key>& asked() const { return shared_->asked; }

  State state() const {
    if (shared_->error) return State::failed;
    if (!shared_->known) return shared_->under_way ? State::under_way : State::none;
    return answers() ? State::current : State::old;
  }
  /// Also of an answer that follows an old one.
  bool under_way() const { return shared_->under_way; }
  /// The last answer that came, whatever it answers; null before the first.
  const std::shared_ptr<const Result>& last() const { return shared_->known; }
  /// What last() answers.
  const std::optional<Key>& last_key() const { return shared_->of; }
  /// The answer to what was asked last; null unless it is known.
  std::shared_ptr<const Result> current() const { return state() == State::current ? shared_->known : nullptr; }
  /// Of what was asked last; "" = it has not failed.
  std::string error() const { return shared_->error.value_or(""); }
  const std::string& tag() const { return job_.tag; }

  /// What is under way is dropped and not asked again, until another key is wanted.
  void stop(JobRunner& jobs) {
    jobs.forget(job_.tag);
    shared_->under_way = false;
  }
  /// What is under way is dropped; who wants it asks again.
  void put_off(JobRunner& jobs) {
    if (!shared_->under_way) return;
    stop(jobs);
    shared_->asked.reset();
  }
  /// As if nothing had been asked: keys and answers go. True when something went.
  bool let_go(JobRunner& jobs) {
    if (!shared_->asked && !shared_->known) return false;
    stop(jobs);
    shared_ = std::make_shared<Shared>();
    return true;
  }

 private:
  static std::shared_ptr<const Result> share(std::shared_ptr<const Result> made) { return made; }
  template <class Made>
    requires(!std::is_convertible_v<Made, std::shared_ptr<const Result>>)
  static std::shared_ptr<const Result> share(Made made) {
    return std::make_shared<const Result>(std::move(made));
  }

  std::uint64_t words() const { return holds_ == Holds::words ? words_generation() : 0; }
  bool answers() const { return shared_->known && shared_->of == shared_->asked && shared_->of_words == words(); }

  struct Shared {
    std::optional<Key> asked, of;                 // last; what `known` answers
    std::uint64_t asked_words = 0, of_words = 0;  // words() then
    std::shared_ptr<const Result> known;
    std::optional<std::string> error;
    bool under_way = false;
  };
  JobName job_;
  OnFailure on_failure_;
  Holds holds_;
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();  // a late answer may outlive this
};

}  // namespace headscope
