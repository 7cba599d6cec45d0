"""The proxy: real clients of OpenAI and Anthropic, our service, and a provider behind it."""
