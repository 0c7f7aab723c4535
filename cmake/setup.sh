# What ./run and ./test share: install what is missing, configure, build. Sourced, with `root` and `me` set. Both build the same
# folder, build/release: what is tested is what is started, compiled once.
# Everything said here goes to stderr, so that the output of a command started through ./run --cli stays clean.

# Where ccache is installed, it may share what uses precompiled headers.
export CCACHE_SLOPPINESS="${CCACHE_SLOPPINESS:-pch_defines,time_macros}"

say() { printf '%s: %s\n' "$me" "$1" >&2; }

# fail MESSAGE HINT: one clear line and a way out.
fail() {
  say "$1"
  printf '  hint: %s\n' "$2" >&2
  exit 1
}

# quietly LOG COMMAND...: runs the command with its output in build/LOG; on failure shows what failed, or the end of it.
quietly() {
  local log="$root/build/$1"
  shift
  mkdir -p "$root/build"
  "$@" >"$log" 2>&1 && return 0
  if grep -q '^FAILED: ' "$log"; then
    sed -n '/^FAILED: /,$p' "$log" | head -n 40 >&2
  else
    tail -n 40 "$log" >&2
  fi
  return 1
}

# with_progress LOG COMMAND...: quietly, and which step of how many a build is at: on a terminal always, elsewhere a line a minute.
with_progress() {
  local log="$root/build/$1" job step= told= each=60 waited=0
  if [ -t 2 ]; then each=1; fi
  quietly "$@" &
  job=$!
  while kill -0 "$job" 2>/dev/null; do
    sleep 1
    waited=$((waited + 1))
    if [ $((waited % each)) -ne 0 ]; then continue; fi
    step=$(sed -n 's/^\[\([0-9]*\)\/\([0-9]*\)\].*/step \1 of \2/p' "$log" 2>/dev/null | tail -n 1)
    if [ -z "$step" ] || [ "$step" = "$told" ]; then continue; fi
    told=$step
    if [ -t 2 ]; then printf '\r%s: %s ' "$me" "$step" >&2; else say "$step"; fi
  done
  if [ -t 2 ] && [ -n "$told" ]; then printf '\r\033[K' >&2; fi
  wait "$job"
}

# missing_packages required|optional: those of the list that dpkg does not know as installed.
missing_packages() {
  local installed package kind
  installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' 2>/dev/null | sed -n 's/^installed //p')
  while read -r package kind; do
    case "$package" in '' | '#'*) continue ;; esac
    [ "${kind:-required}" = "$1" ] || continue
    grep -qxF -- "$package" <<<"$installed" || printf '%s\n' "$package"
  done <"$root/cmake/packages-debian.txt"
}

is_debian() {
  [ -r /etc/os-release ] || return 1
  (
    . /etc/os-release
    case " ${ID:-} ${ID_LIKE:-} " in *' debian '* | *' ubuntu '*) exit 0 ;; *) exit 1 ;; esac
  ) && command -v apt-get >/dev/null && command -v dpkg-query >/dev/null
}

install_packages() {
  if ! is_debian; then
    local tool
    for tool in cmake ninja pkg-config; do
      command -v "$tool" >/dev/null ||
        fail "$tool is missing, and only Debian and Ubuntu packages are installed automatically" \
          "install the packages that docs/building.md lists for your system, then run this again"
    done
    return 0
  fi
  local required optional
  required=$(missing_packages required)
  optional=$(missing_packages optional)
  # An optional package that was looked for once is not looked for at every start.
  local asked="$root/build/optional-packages-asked"
  if [ -n "$optional" ] && [ -z "$required" ] && [ -e "$asked" ] && [ ! "$root/cmake/packages-debian.txt" -nt "$asked" ]; then
    return 0
  fi
  [ -n "$required$optional" ] || return 0

  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      if [ -z "$required" ]; then return 0; fi
      fail "packages are missing, and neither root nor sudo is at hand to install them" \
        "as root: apt-get install ${required//$'\n'/ } ${optional//$'\n'/ }"
    fi
    as_root=(sudo)
  fi
  as_root+=(env DEBIAN_FRONTEND=noninteractive)

  say "reading the package lists"
  local update_failed=
  quietly apt-update.log "${as_root[@]}" apt-get update -q || update_failed=1
  local package available=()
  for package in $optional; do
    if apt-cache show "$package" >/dev/null 2>&1; then available+=("$package"); fi
  done
  local wanted=()
  if [ -n "$required" ]; then mapfile -t wanted <<<"$required"; fi
  wanted+=("${available[@]}")
  if [ ${#wanted[@]} -gt 0 ]; then
    say "installing ${#wanted[@]} packages: ${wanted[*]}"
    if ! quietly apt-install.log "${as_root[@]}" apt-get install -q -y --no-install-recommends "${wanted[@]}"; then
      if [ -n "$update_failed" ]; then
        fail "the package lists could not be read, so nothing can be installed" \
          "check the network and /etc/apt/sources.list; the log is build/apt-update.log"
      fi
      fail "apt-get could not install all packages" \
        "see the lines above (all of them: build/apt-install.log); by hand: apt-get install ${wanted[*]}"
    fi
  fi
  mkdir -p "$root/build" && touch "$asked"
}

# The window's toolkit, newer than stable releases have it: its source package from the newest suite of the archive that
# this machine already reads, verified by apt as any package is. Nothing is installed; it is unpacked under build/third_party.
fetch_imgui() {
  local dest="$root/build/third_party" origin mirror suite component
  if [ -f "$dest/imgui/imgui.h" ] || ! is_debian; then return 0; fi
  read -r mirror origin < <(apt-get indextargets --format '$(REPO_URI) $(ORIGIN)' 'Created-By: Packages' 2>/dev/null |
    grep -v -- '-security/* ' | grep -E ' (Debian|Ubuntu)$' | head -n 1) || true
  case "${origin:-}" in
    Debian) suite=sid component=main ;;
    Ubuntu) suite=devel component=universe ;;
    *) say "no Debian or Ubuntu archive is configured, so the window's toolkit cannot be fetched" && return 0 ;;
  esac
  local work="$dest/apt" keyring="/usr/share/keyrings/${origin,,}-archive-keyring.gpg"
  rm -rf "$work" && mkdir -p "$work/lists/partial" "$work/archives/partial"
  {
    printf 'Types: deb-src\nURIs: %s\nSuites: %s\nComponents: %s\n' "$mirror" "$suite" "$component"
    if [ -r "$keyring" ]; then printf 'Signed-By: %s\n' "$keyring"; fi
  } >"$work/newest.sources"
  local apt=(apt-get -q -o "Dir::Etc::sourcelist=$work/newest.sources" -o Dir::Etc::sourceparts=/dev/null
    -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work" -o Debug::NoLocking=1 -o APT::Sandbox::User=
    -o Acquire::Check-Valid-Until=false) # a mirror that lags is as good a source; signatures are checked all the same
  say "fetching the source of Dear ImGui"
  if quietly imgui-update.log "${apt[@]}" update &&
    (cd "$work" && quietly imgui-source.log "${apt[@]}" source --download-only imgui) &&
    quietly imgui-unpack.log dpkg-source --no-check -x "$work"/imgui_*.dsc "$work/imgui"; then
    mv "$work/imgui" "$dest/imgui"
    rm -rf "$work"
  else
    rm -rf "$work"
    say "the source of Dear ImGui could not be fetched: the window is left out, all else is built"
  fi
}

# The newest Clang of at least 16 that is installed, as a command; nothing where there is none.
find_clang() {
  local command version
  for command in $(compgen -c clang++ | sort -Vru); do
    version=$("$command" -dumpversion 2>/dev/null) || continue
    if [ "${version%%.*}" -ge 16 ] 2>/dev/null; then
      printf '%s\n' "$command"
      return 0
    fi
  done
}

# configure PRESET [FLAGS…]
configure() {
  local dir="$root/build/$1" flags=("${@:2}")
  if [ -f "$dir/CMakeCache.txt" ]; then
    # A checkout that was moved or copied together with its build folder starts that folder afresh.
    if ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$dir/CMakeCache.txt"; then
      flags+=(--fresh)
    elif [ -f "$dir/build.ninja" ] && [ ! "$root/CMakePresets.json" -nt "$dir/build.ninja" ] &&
      [ ! "$root/cmake/packages-debian.txt" -nt "$dir/build.ninja" ] &&
      [ ! "$root/build/third_party/imgui" -nt "$dir/build.ninja" ]; then
      return 0 # ninja itself notices changed CMakeLists.txt files
    fi
  fi
  if command -v ccache >/dev/null; then flags+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
  if ! is_debian; then flags+=(-DHEADSCOPE_FETCH=ON); fi
  say "configuring ($1)"
  (cd "$root" && quietly "$1-configure.log" cmake "${flags[@]}" --preset "$1") ||
    fail "CMake could not configure the $1 build" \
      "a library named above is missing or too old: see docs/building.md; all of the log: build/$1-configure.log"
}

# Every file is in the project's own format; skipped where the Clang-Format that it is defined by is missing, since versions differ.
check_format() {
  local tool=clang-format-16
  if ! command -v "$tool" >/dev/null; then
    skipped+=" the format of the source (no $tool found)"
    return 0
  fi
  say "checking the format"
  mkdir -p "$root/build"
  (cd "$root" && find core viz app tests cmake -name '*.cpp' -o -name '*.h' -o -name '*.cu' | sort |
    xargs -n 64 -P 4 "$tool" --dry-run -Werror) >"$root/build/format.log" 2>&1 && return 0
  sed -n 's/: error:.*//p' "$root/build/format.log" | sort -u | head -n 40 >&2
  fail "files are not in the project's format (the lines above)" "$tool -i FILE…; all of the log: build/format.log"
}

# The core once more with another compiler, which takes other things amiss; skipped where there is none.
check_with_clang() {
  local clang
  clang=$(find_clang)
  if [ -z "$clang" ]; then
    skipped+=" core with Clang (none of version 16 or newer found)"
    return 0
  fi
  configure clang "-DCMAKE_CXX_COMPILER=$clang"
  build clang headscope_core
}

# build PRESET TARGET...
build() {
  local preset="$1" dir="$root/build/$1"
  shift
  configure "$preset"
  if ninja -C "$dir" -n "$@" 2>/dev/null | grep -q 'no work to do'; then return 0; fi
  say "building ($preset): $*"
  with_progress "$preset-build.log" cmake --build "$dir" --parallel "$(nproc 2>/dev/null || echo 2)" --target "$@" ||
    fail "the $preset build failed" "see the lines above; all of the log: build/$preset-build.log"
}
