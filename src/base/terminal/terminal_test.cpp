#include "base/terminal/terminal.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>

#include "base/str.h"

namespace ucas {
namespace {

// As much of a terminal as a block needs: moves, erasing, colours, automatic line breaks, scrolling.
class Screen {
 public:
  explicit Screen(size_t columns) : columns_(columns) {}
  void feed(const std::string& bytes) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      char c = bytes[i];
      if (c == '\r') {
        x_ = 0;
      } else if (c == '\n') {
        ++y_;
      } else if (c == '\033') {
        i = sequence(bytes, i + 1);
      } else {
        put(c);
      }
    }
  }
  std::string text() const {
    std::string out;
    for (const std::string& row : rows_) {
      size_t end = row.find_last_not_of(' ');
      out += row.substr(0, end == std::string::npos ? 0 : end + 1) + "\n";
    }
    return out;
  }
  bool wraps() const { return wraps_; }
  size_t row() const { return y_; }

 private:
  void put(char c) {
    if (x_ >= columns_) {
      if (!wraps_) return;
      x_ = 0;
      ++y_;
    }
    if (rows_.size() <= y_) rows_.resize(y_ + 1);
    rows_[y_].resize(std::max(rows_[y_].size(), x_ + 1), ' ');
    rows_[y_][x_++] = c;
  }
  size_t sequence(const std::string& bytes, size_t i) {
    EXPECT_EQ(bytes.at(i), '[');
    std::string number;
    for (++i; !std::isalpha(static_cast<unsigned char>(bytes.at(i))); ++i) number += bytes[i];
    if (rows_.size() <= y_) rows_.resize(y_ + 1);
    switch (bytes[i]) {
      case 'A':
        EXPECT_LE(std::stoul(number), y_);
        y_ -= std::stoul(number);
        break;
      case 'K':
        rows_[y_].resize(std::min(rows_[y_].size(), x_));
        break;
      case 'J':
        rows_[y_].resize(std::min(rows_[y_].size(), x_));
        rows_.resize(y_ + 1);
        break;
      case 'h':
      case 'l':
        EXPECT_EQ(number, "?7");
        wraps_ = bytes[i] == 'h';
        break;
      default:
        EXPECT_EQ(bytes[i], 'm');
    }
    return i;
  }
  size_t columns_, x_ = 0, y_ = 0;
  bool wraps_ = true;
  std::vector<std::string> rows_;
};

std::vector<InkedLine> text_lines(std::vector<std::string> texts) {
  std::vector<InkedLine> lines;
  for (std::string& text : texts) lines.push_back({{std::move(text), Ink::good}});
  return lines;
}

TEST(terminal, a_block_rewrites_itself_and_messages_stay_above_it) {
  Screen screen(40);
  LiveBlock block([&](const std::string& text) { screen.feed(text); }, true);
  screen.feed("before\r\n");
  block.draw(text_lines({"step 1", "a longer line", "third"}), {40, 24});
  EXPECT_EQ(screen.text(), "before\nstep 1\na longer line\nthird\n\n");
  block.draw(text_lines({"step 2", "short"}), {40, 24});
  EXPECT_EQ(screen.text(), "before\nstep 2\nshort\n\n");
  block.print_above("warning: one\ntwo", {40, 24});
  EXPECT_EQ(screen.text(), "before\nwarning: one\ntwo\nstep 2\nshort\n\n");
  block.draw(text_lines({"step 3", "last"}), {40, 24});
  EXPECT_EQ(screen.text(), "before\nwarning: one\ntwo\nstep 3\nlast\n\n");
  EXPECT_TRUE(screen.wraps());
  EXPECT_EQ(screen.row(), 5u);  // the line below the block
}

TEST(terminal, a_block_is_never_wider_or_taller_than_its_terminal) {
  Screen screen(20);
  LiveBlock block([&](const std::string& text) { screen.feed(text); }, false);
  std::vector<std::string> texts(30, std::string(50, 'x'));
  for (int i = 0; i < 3; ++i) block.draw(text_lines(texts), {20, 6});
  std::string line = std::string(16, 'x') + "...\n";
  EXPECT_EQ(screen.text(), line + line + line + line + line + "\n");
}

TEST(terminal, a_narrower_window_has_broken_the_lines_and_all_of_them_are_replaced) {
  std::string written;
  LiveBlock block([&](const std::string& text) { written = text; }, false);
  block.draw(text_lines({std::string(60, 'x'), "y"}), {80, 24});
  block.draw(text_lines({"x", "y"}), {25, 24});
  EXPECT_EQ(written.substr(0, 5), "\r\033[4A");  // 60 cells are three rows of 25
}

TEST(terminal, text_of_a_model_cannot_command_the_terminal) {
  std::string hostile =
      "a\033[2J\x9b\x31mb\xc2\x9b?25l\r\n\b\x07\x7f\xe2\x80\xaeright-to-left\xe2\x80\x8b\xf3\xa0\x80\x81";
  std::string seen = visible(hostile, true);
  EXPECT_EQ(seen,
            "a\\x1b[2J\\x9b1mb\\xc2\\x9b?25l\\x0d\\n\\x08\\x07\\x7f\\u202eright-to-left\\xe2\\x80\\x8b"
            "\\xf3\\xa0\\x80\\x81");
  EXPECT_EQ(visible("x \xe4\xb8\xad \xc3\xa9", true), "x \xe4\xb8\xad \xc3\xa9");
  EXPECT_EQ(visible("x \xc3\xa9", false), "x \\xc3\\xa9");
}

TEST(terminal, no_bytes_at_all_get_through_as_controls) {
  rc::check("visible() leaves printable text only", [](const std::string& bytes, bool utf8) {
    std::string seen = visible(bytes, utf8);
    RC_ASSERT(valid_utf8(seen));
    for (size_t i = 0; i < seen.size(); ++i) {
      auto byte = static_cast<unsigned char>(seen[i]);
      RC_ASSERT(byte >= 0x20 && byte != 0x7f);
      RC_ASSERT(utf8 || byte < 0x80);
      bool c1 = byte == 0xc2 && static_cast<unsigned char>(seen[i + 1]) < 0xa0;
      RC_ASSERT(!c1);
    }
  });
}

TEST(terminal, a_cut_text_takes_no_more_cells_than_it_may) {
  EXPECT_EQ(fit("abcdefgh", 8), "abcdefgh");
  EXPECT_EQ(fit("abcdefghi", 8), "abcde...");
  EXPECT_EQ(fit("\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad", 8), "\xe4\xb8\xad\xe4\xb8\xad...");
  EXPECT_EQ(fit_middle("0123456789abcdefghij", 15), "01234 ... fghij");
  rc::check("of any text", [](const std::string& bytes) {
    std::string text = visible(bytes, true);
    size_t width = *rc::gen::inRange<size_t>(1, 30);
    RC_ASSERT(cells(fit(text, width)) <= width);
    RC_ASSERT(cells(fit_middle(text, width)) <= width);
    RC_ASSERT(valid_utf8(fit(text, width)) && valid_utf8(fit_middle(text, width)));
    RC_ASSERT(cells(plain_text(fit(InkedLine{{text}, {text}, {"end"}}, width))) <= width);
  });
}

TEST(terminal, a_sparkline_goes_from_lowest_to_highest) {
  std::vector<double> ramp = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(sparkline(ramp, 8, false), "_.-~=+*#");
  EXPECT_EQ(sparkline(ramp, 8, true), "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588");
  EXPECT_EQ(sparkline(ramp, 4, false), "_-+#");  // means of pairs
  EXPECT_EQ(sparkline(std::vector<double>{5, 5, 5}, 8, false), "___");
  EXPECT_EQ(sparkline(std::vector<double>{1, std::nan(""), INFINITY, 2}, 8, false), "_  #");
  EXPECT_EQ(sparkline(std::vector<double>{-1e308, 1e308}, 8, false).size(), 2u);
  EXPECT_EQ(sparkline({}, 8, true), "");
}

TEST(terminal, a_bar_is_as_full_as_its_share) {
  EXPECT_EQ(progress_bar(0.5, 10, false), "#####.....");
  EXPECT_EQ(progress_bar(7, 4, false), "####");
  EXPECT_EQ(progress_bar(std::nan(""), 4, false), "....");
  EXPECT_EQ(cells(progress_bar(0.3, 10, true)), 10u);
}

TEST(terminal, utf8_is_what_the_first_set_variable_says) {
  auto with = [](const char* all, const char* ctype, const char* lang) {
    ::setenv("LC_ALL", all, 1);
    ::setenv("LC_CTYPE", ctype, 1);
    ::setenv("LANG", lang, 1);
    return locale_is_utf8();
  };
  EXPECT_TRUE(with("", "", "C.UTF-8"));
  EXPECT_TRUE(with("", "en_US.utf8", "C"));
  EXPECT_FALSE(with("C", "", "C.UTF-8"));
  EXPECT_FALSE(with("", "", ""));
}

}  // namespace
}  // namespace ucas
