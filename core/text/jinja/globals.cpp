#include <fmt/format.h>

#include "core/text/jinja/builtins.h"

namespace headscope::jinja {

namespace {
constexpr std::int64_t longest_range = 100000;  // as Jinja's own sandbox
}

Members globals(std::time_t now) {
  const auto function = [](std::function<Value(const Arguments&)> call) { return Value(Callable{std::move(call)}); };
  Members out;
  out.emplace_back("range", function([](const Arguments& a) -> Value {
                     const bool one = a.given.size() < 2;
                     const std::int64_t from = one ? 0 : a.integer(0, "start", 0),
                                        to = a.integer(one ? 0 : 1, "stop", 0), by = a.integer(2, "step", 1);
                     if (by == 0) throw Error(a.where, "a step other than 0", "0");
                     List list;
                     for (std::int64_t i = from; by > 0 ? i < to : i > to; i += by) {
                       if (static_cast<std::int64_t>(list.size()) >= longest_range)
                         throw Error(a.where, fmt::format("a range of at most {}", longest_range), "a longer one");
                       list.emplace_back(i);
                     }
                     a.budget.spend(list.size() * sizeof(Value), a.where);
                     return list;
                   }));
  out.emplace_back("namespace", function([](const Arguments& a) -> Value {
                     auto made = std::make_shared<Namespace>();
                     if (!a.given.empty() && a.given[0].members())
                       for (const auto& [name, value] : *a.given[0].members()) made->set(name, value);
                     for (const auto& [name, value] : a.named) made->set(name, value);
                     return made;
                   }));
  out.emplace_back("dict", function([](const Arguments& a) -> Value {
                     Members made;
                     if (!a.given.empty() && a.given[0].members()) made = *a.given[0].members();
                     for (const auto& [name, value] : a.named) put(made, name, value);
                     return made;
                   }));
  out.emplace_back("raise_exception", function([](const Arguments& a) -> Value {
                     throw Error(a.where, "a conversation that the template takes", a.at(0, "message").printed());
                   }));
  out.emplace_back("strftime_now", function([now](const Arguments& a) -> Value {
                     std::tm local{};
                     localtime_r(&now, &local);
                     char text[256];
                     return std::string(text,
                                        std::strftime(text, sizeof text, a.at(0, "format").printed().c_str(), &local));
                   }));
  return out;
}

}  // namespace headscope::jinja
