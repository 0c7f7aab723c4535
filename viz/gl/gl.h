#pragma once
// OpenGL 3.3 core, from the system's own headers and library: no loader is needed where the functions are exported.

#ifdef __APPLE__
#define GL_SILENCE_DEPRECATION
#include <OpenGL/gl3.h>
#else
#define GL_GLEXT_PROTOTYPES 1
#include <GL/glcorearb.h>
#endif
