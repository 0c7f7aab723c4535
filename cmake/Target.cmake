# In MiB: that of this machine, and 2 GiB for each file compiled at a time.
cmake_host_system_information(RESULT headscope_memory QUERY TOTAL_PHYSICAL_MEMORY)
cmake_host_system_information(RESULT headscope_memory_for_speed QUERY NUMBER_OF_LOGICAL_CORES)
math(EXPR headscope_memory_for_speed "2048 * ${headscope_memory_for_speed}")

# headscope_target(NAME): what every target of our own code has in common.
function(headscope_target name)
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR})
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 sees ghosts in std::optional and std::string under -O2 and -O3; GCC 13 and Clang agree that nothing is there.
    target_compile_options(${name} PRIVATE -Wno-maybe-uninitialized -Wno-restrict)
  endif()
  if(HEADSCOPE_WERROR)
    target_compile_options(${name} PRIVATE -Werror)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND headscope_memory GREATER_EQUAL headscope_memory_for_speed)
    # A tenth of the compiler's time goes into looking for memory to free that it would not have run out of.
    target_compile_options(${name} PRIVATE --param=ggc-min-heapsize=600000)
  endif()
endfunction()

# headscope_precompile(NAME): cmake/precompiled.h, compiled once for all who ask. A compiler takes it only where macros and the kind of
# code are the same. Left out of it on purpose: nlohmann/json and CLI11, whose templates every file would then instantiate that never
# names them.
function(headscope_precompile name)
  if(HEADSCOPE_PRECOMPILE)
    target_precompile_headers(${name} REUSE_FROM headscope_precompiled)
    headscope_as_precompiled(${name})
  endif()
endfunction()

# headscope_precompile_own(NAME HEADERS…): the same and these, for this target alone.
function(headscope_precompile_own name)
  if(HEADSCOPE_PRECOMPILE)
    target_precompile_headers(${name} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/precompiled.h ${ARGN})
    headscope_as_precompiled(${name})
  endif()
endfunction()

function(headscope_as_precompiled name)
  get_target_property(type ${name} TYPE)
  if(type STREQUAL EXECUTABLE)
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${name} PRIVATE -fPIC) # as libraries are, instead of -fPIE
  endif()
  target_compile_options(${name} PRIVATE -pthread) # which pkg-config asks for in some targets
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Of precompiled headers GCC forgets which were the system's, and warns of what it otherwise keeps to itself.
    target_compile_options(${name} PRIVATE -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds -Wno-restrict)
  endif()
endfunction()

# headscope_unity(NAME [FILE…]): a folder's files compiled together, at most thirty at a time, since most of a compiler's work on one is on
# what its neighbours include and instantiate too: twice as many at a time cost a fifth less. So names in unnamed namespaces differ within
# a folder. FILEs are compiled by themselves; so is every file with options or definitions of its own. Files name what they use all the
# same: -DHEADSCOPE_UNITY=OFF builds each by itself (the sanitizer presets do).
function(headscope_unity name)
  if(NOT HEADSCOPE_UNITY)
    return()
  endif()
  foreach(file IN LISTS ARGN)
    set_source_files_properties(${file} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    get_filename_component(file ${file} ABSOLUTE)
    list(APPEND alone ${file})
  endforeach()
  get_target_property(sources ${name} SOURCES)
  foreach(source IN LISTS sources)
    get_filename_component(source ${source} ABSOLUTE)
    if(source IN_LIST alone)
      continue()
    endif()
    get_filename_component(folder ${source} DIRECTORY)
    file(RELATIVE_PATH folder ${CMAKE_SOURCE_DIR} ${folder})
    string(MAKE_C_IDENTIFIER ${folder} folder)
    list(APPEND folders ${folder})
    list(APPEND files_${folder} ${source})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder IN LISTS folders)
    list(LENGTH files_${folder} count)
    set(at 0)
    foreach(source IN LISTS files_${folder})
      math(EXPR group "${at} * ((${count} + 29) / 30) / ${count} + 1") # equally large ones
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${group})
      math(EXPR at "${at} + 1")
    endforeach()
  endforeach()
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # A local name hides nothing when a neighbour has a function of that name, and what a .cpp file defines is seen by its neighbours alone.
  target_compile_options(${name} PRIVATE -Wno-shadow "$<$<CXX_COMPILER_ID:GNU>:-Wshadow=local;-Wno-subobject-linkage>")
endfunction()

# headscope_define(FILE DEFINITION…): for this file alone, which therefore is compiled without precompiled headers.
function(headscope_define file)
  set_source_files_properties(${file} PROPERTIES COMPILE_DEFINITIONS "${ARGN}" SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# headscope_embed(TARGET FILE SYMBOL): the file's text as `extern const std::string_view SYMBOL` in namespace headscope.
function(headscope_embed target file symbol)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/embed/${symbol}.cpp)
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DIN=${file} -DOUT=${out} -DSYMBOL=${symbol} -P ${CMAKE_SOURCE_DIR}/cmake/Embed.cmake
    DEPENDS ${file} ${CMAKE_SOURCE_DIR}/cmake/Embed.cmake VERBATIM)
  target_sources(${target} PRIVATE ${out})
endfunction()
