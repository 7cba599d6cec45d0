"""What a model was asked for, in numbers."""

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class ModelUsage:
    """Requests to a model, and the tokens that went in and out."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Tokens in and out."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "ModelUsage") -> "ModelUsage":
        return ModelUsage(
            self.requests + other.requests,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )

    def to_dict(self) -> dict[str, int]:
        """The numbers as JSON tells them."""
        return {**asdict(self), "total_tokens": self.total_tokens}
