// The HTTP library (cpp-httplib), with TLS as Debian compiles it: the macro decides what its classes are made of. For
// the files of this folder alone.
#pragma once

#define CPPHTTPLIB_OPENSSL_SUPPORT
#include <httplib.h>
