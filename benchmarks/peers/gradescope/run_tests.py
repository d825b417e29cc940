"""Run the tests in tests/ and write the results file that Gradescope reads."""

import unittest

from gradescope_utils.autograder_utils.json_test_runner import JSONTestRunner

if __name__ == "__main__":
    suite = unittest.defaultTestLoader.discover("tests")
    with open("../results/results.json", "w", encoding="utf-8") as results:
        JSONTestRunner(stream=results, visibility="visible").run(suite)
