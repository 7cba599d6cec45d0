"""The proxy: calls of OpenAI's and Anthropic's APIs pass through, and get memories on their way.

A call that names its user gets the memories about its newest message. After it, the message and the answer
are recorded. Every other byte of the call and of its answer passes as it is.
"""
