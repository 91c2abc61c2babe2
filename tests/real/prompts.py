"""What the tests of a real model ask it, and what it is tuned on: made here, the same everywhere."""

PROMPTS = [
    "What is the capital of France?", "Write a haiku about the sea.", "What is 12 + 7?", "Explain photosynthesis to a child in two sentences.",
    "Write a Python function that reverses a string.", "Translate 'good morning' into Spanish, French and German.", "List three uses of a paperclip.",
    "Who wrote Romeo and Juliet, and when?", "Tom has 5 apples and buys 3 more. How many apples does he have?",
    "Summarise: The quick brown fox jumps over the lazy dog.", "What is the chemical formula of water?", "Give me a recipe for pancakes.",
    "Continue: Once upon a time, in a village far away,", "Is 17 a prime number? Why?", "\u65e5\u672c\u306e\u9996\u90fd\u306f\u3069\u3053\u3067\u3059\u304b\uff1f",
    "\u00c9cris une phrase sur l'\u00e9t\u00e9 \u00e0 Montr\u00e9al.", "Fix this code: `for i in range(10) print(i)`",
    "What's the difference between TCP and UDP?", "Solve for x: 2x + 3 = 11.", "\U0001f642\U0001f680 What do these emojis mean?",
]  # fmt: skip
LONGEST = 128  # tokens of an answer

NAMES = ["Tom", "Anna", "Kate", "Ben", "Lucy", "Omar", "Mia", "Paul"]
THINGS = ["apples", "pens", "books", "coins", "cards", "shells"]


def word_problem(i):
    """One of a few hundred sums, with its answer."""
    name, thing, a, b = NAMES[i % 8], THINGS[i % 6], 2 + i * 7 % 19, 1 + i * 5 % 11
    return f"{name} has {a} {thing} and gets {b} more. How many {thing} does {name} have now?", a + b


TUNED = [{"prompt": f"Question: {word_problem(i)[0]}\nAnswer:", "response": f" The answer is {word_problem(i)[1]}."} for i in range(6)]
# What a base model goes on from, for so many tokens: worked examples, a story, code with runs of spaces, other scripts.
CONTINUED = ["".join(f"Question: {word_problem(i)[0]}\nAnswer: {word_problem(i)[1]}\n\n" for i in range(3)) + f"Question: {word_problem(3)[0]}\nAnswer:",
             PROMPTS[12].removeprefix("Continue: "), "def fibonacci(n):\n    if n < 2:\n        return n\n    ", PROMPTS[14] + "\n", "L'\u00e9t\u00e9 \u00e0 Montr\u00e9al"]
SHORT = 32
