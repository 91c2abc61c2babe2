"""Which problems of an evaluation ucas.overlap finds among those of a training. Needs nothing of the package."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "ucas"))
from overlap import find_overlaps, words_of


class Words(unittest.TestCase):
    def test_are_letters_and_digits_with_the_signs_before_them(self):
        self.assertEqual(words_of("If $x^2 = 9$, find X."), ["if", "x", "^2", "=9", "find", "x"])
        self.assertEqual(words_of("Compute -5 + 12.5%."), ["compute", "-5", "+12.5%"])
        self.assertEqual(words_of("2(x+1) < 4"), ["2", "(x", "+1)", "<4"])
        self.assertEqual(words_of("f(x) (the sum of 2 + 3)"), ["f", "x", "the", "sum", "of", "2", "+3"])
        self.assertEqual(words_of("\u6c42 12 \u89e3 \u00e9t\u00e9"), ["\u6c42", "12", "\u89e3", "\u00e9t\u00e9"])
        self.assertEqual(words_of(" +-* "), [])

    def test_spellings_of_an_expression_are_the_same(self):
        for a, b in [("3 \\times 4", "3*4"), ("3 \u00d7 4", "$3 \\cdot 4$"), ("x \u2264 4", "x <= 4"), ("$x \\leq 4$", "x<=4"),
                     ("5 \u2212 2", "5-2"), ("a ten-sided die", "a ten sided die"), ("a 10-sided die", "a 10 sided die"),
                     ("one number - any number", "one number -- any number"), ("**Find** x", "Find x"), ("\\left(x+1\\right)^2", "(x+1)^2"),
                     ("\\dfrac{1}{2}", "\\frac{1}{2}")]:
            self.assertEqual(words_of(a), words_of(b))

    def test_another_sign_bracket_or_number_is_another_problem(self):
        for a, b in [("Compute 12 + 5 - 3 * 2 / 7.", "12 * 5 + 3 - 2 - 7."), ("12 + 5", "12 - 5"), ("-3", "3"), ("(1 + 2) * 3", "1 + 2 * 3"),
                     ("50%", "50"), ("x^2", "x*2"), ("x < 2", "x > 2"), ("|x - 3|", "x - 3"), ("1.5", "15"),
                     (" a3 b*2 c-3.\n", " a3 b-2 c*3.\n"), ("3 - \\sin x", "3 + \\sin x"), ("a-b", "a+b")]:
            self.assertNotEqual(words_of(a), words_of(b))


class Overlaps(unittest.TestCase):
    def test_problems_that_differ_by_one_sign_are_not_found(self):
        self.assertEqual(find_overlaps(["Compute 12 + 5 - 3 * 2 / 7."], ["Compute 12 * 5 + 3 - 2 - 7."], 13), [])

    def test_problems_that_are_the_same_but_for_their_punctuation_are(self):
        found, = find_overlaps(["other", "Find x, if x + 1 = 2!"], ["find $x$ if $x+1=2$", "find y"], 13)
        self.assertEqual((found.evaluated, found.trained, found.whole, found.shared, found.words), (0, 1, True, 6, 6))

    def test_the_longest_run_of_words_that_both_have(self):
        run = "a train leaves the station at noon with three cars"
        first, second = find_overlaps(["at noon with three cars", f"once {run} and more", f"b {run} and five"],
                                      [f"one day {run} and five boxes", "a train leaves the station at one"], 5)
        self.assertEqual((first.text, first.trained, first.shared, first.others, first.whole), (run + " and five", 2, 12, 2, False))
        self.assertEqual(second.text, "a train leaves the station at")
        self.assertEqual(find_overlaps([run], ["at noon with three cars, what then"], 6), [])

    def test_an_evaluated_problem_inside_a_training_problem_is_whole(self):
        found, = find_overlaps(["Hint: how many cars has a train of three, if one is lost? Think."],
                               ["How many cars has a train of three if one is lost?"], 8)
        self.assertTrue(found.whole)


if __name__ == "__main__":
    unittest.main()
