// Precompiled for the tests.
#include <gtest/gtest.h>

#include "pch.h"
