# The worked example of the task, run on your own code.
text = b"aaabdaaabac"
merges = train(text, 3)
tokens = encode(text, merges)
{"merges": merges, "tokens": tokens, "decoded": decode(tokens, merges)}
