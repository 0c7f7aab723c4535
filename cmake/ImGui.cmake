# Dear ImGui (≥ 1.92) built from source, since its fonts and hooks are compile-time choices of ours. Looked for in this order:
#   -DHEADSCOPE_IMGUI_DIR=folder · build/third_party/imgui (put there by ./run and ./test) · with -DHEADSCOPE_FETCH=ON its pinned tag.
# Sets HEADSCOPE_HAVE_WINDOW. Without it everything but the window is built, and one line says so.
option(HEADSCOPE_WINDOW "build the window" ON)
option(HEADSCOPE_FETCH "fetch the source of Dear ImGui when no folder has it" OFF)
set(HEADSCOPE_IMGUI_DIR "" CACHE PATH "folder with the source of Dear ImGui 1.92 or newer")
set(HEADSCOPE_IMGUI_TAG v1.92.2b)
set(HEADSCOPE_HAVE_WINDOW OFF)
if(NOT HEADSCOPE_WINDOW)
  message(STATUS "window: not built (HEADSCOPE_WINDOW=OFF)")
  return()
endif()

set(imgui_dir "${HEADSCOPE_IMGUI_DIR}")
if(NOT imgui_dir)
  set(imgui_dir ${CMAKE_SOURCE_DIR}/build/third_party/imgui)
  if(NOT EXISTS ${imgui_dir}/imgui.h AND HEADSCOPE_FETCH)
    include(FetchContent)
    FetchContent_Declare(imgui_source GIT_REPOSITORY https://github.com/ocornut/imgui.git GIT_TAG ${HEADSCOPE_IMGUI_TAG}
      GIT_SHALLOW ON)
    FetchContent_GetProperties(imgui_source)
    if(NOT imgui_source_POPULATED)
      FetchContent_Populate(imgui_source)
    endif()
    set(imgui_dir ${imgui_source_SOURCE_DIR})
  endif()
endif()

set(missing "")
set(imgui_version 0)
if(EXISTS ${imgui_dir}/imgui.h)
  file(STRINGS ${imgui_dir}/imgui.h line REGEX "#define IMGUI_VERSION_NUM")
  string(REGEX MATCH "[0-9]+" imgui_version "${line}")
endif()
if(imgui_version LESS 19200)
  list(APPEND missing "Dear ImGui 1.92 or newer (./run fetches it, or -DHEADSCOPE_IMGUI_DIR=folder, or -DHEADSCOPE_FETCH=ON)")
endif()
find_package(glfw3 3.3 QUIET)
if(NOT glfw3_FOUND)
  list(APPEND missing "GLFW 3.3")
endif()
set(OpenGL_GL_PREFERENCE GLVND)
find_package(OpenGL QUIET)
if(NOT OpenGL_FOUND)
  list(APPEND missing "OpenGL")
endif()
if(missing)
  list(JOIN missing ", " missing)
  message(STATUS "window: not built, for want of ${missing}; everything else is")
  return()
endif()

set(HEADSCOPE_HAVE_WINDOW ON)
message(STATUS "window: Dear ImGui ${imgui_version} in ${imgui_dir}")
add_library(imgui STATIC
  ${imgui_dir}/imgui.cpp ${imgui_dir}/imgui_draw.cpp ${imgui_dir}/imgui_tables.cpp ${imgui_dir}/imgui_widgets.cpp
  ${imgui_dir}/backends/imgui_impl_glfw.cpp ${imgui_dir}/backends/imgui_impl_opengl3.cpp
  ${imgui_dir}/misc/cpp/imgui_stdlib.cpp)
target_include_directories(imgui SYSTEM PUBLIC ${imgui_dir} ${imgui_dir}/backends ${imgui_dir}/misc/cpp)
# 32-bit characters: text of any script. The test-engine hooks let tests find items by their label; the functions they call are
# in app/widgets/item_registry.cpp.
target_compile_definitions(imgui PUBLIC IMGUI_USE_WCHAR32 IMGUI_DISABLE_OBSOLETE_FUNCTIONS
                                        IMGUI_ENABLE_TEST_ENGINE)
target_compile_options(imgui PRIVATE -w)
target_link_libraries(imgui PUBLIC glfw OpenGL::GL ${CMAKE_DL_LIBS})
