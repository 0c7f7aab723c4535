#pragma once
// A list to choose from, as it stands left of a workspace: a search field, groups under small capitals, one entry
// chosen. Typing narrows the list; up and down walk what is left of it; Enter takes the first that is found.
// Titles are English, drawn as the table in use says them, and found by both. Every entry is named by its title for
// tests. Thread rule: the UI thread.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/widgets/ui.h"

namespace headscope {

struct CatalogueEntry {
  std::string id;     ///< stable: settings and the command line speak it
  std::string title;  ///< "Linear, 1+elu"
  std::string words;  ///< further words that find it: other names, the paper
  bool operator==(const CatalogueEntry&) const = default;
};

struct CatalogueGroup {
  std::string title;  ///< "Exact softmax"; written in small capitals
  std::vector<CatalogueEntry> entries;
  bool operator==(const CatalogueGroup&) const = default;
};

class Catalogue {
 public:
  /// True when `chosen`, an entry's id, changed. `id` names the list.
  bool draw(const Ui& ui, const char* id, std::span<const CatalogueGroup> groups, std::string& chosen);
  /// The up and down keys belong to the list: until one clicks elsewhere. Ask before a shortcut takes them.
  bool takes_arrows() const { return takes_arrows_; }
  /// Puts the cursor into the search field.
  void focus() { focus_ = true; }

 private:
  std::string query_;
  bool takes_arrows_ = true, focus_ = false, follow_ = true;
};

/// Whether every word of `query` begins a word of the entry's title or further words; case does not matter.
bool finds(const CatalogueEntry& entry, std::string_view query);

}  // namespace headscope
