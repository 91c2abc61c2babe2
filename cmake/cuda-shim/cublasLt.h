#pragma once
#include "opaque.h"
