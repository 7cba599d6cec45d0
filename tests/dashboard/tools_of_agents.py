"""Tools of the agent in these tests."""


def weather(city: str) -> str:
    """Tell the weather."""
    return f"{city}: 19 °C, a light breeze from the sea, no rain until Thursday."


def find_trains(origin: str, destination: str) -> str:
    """Tell the next trains."""
    return f'[{{"from": "{origin}", "to": "{destination}", "leaves": "09:39", "arrives": "12:48"}}]'
