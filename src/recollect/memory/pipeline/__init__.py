"""From a conversation to what is known: three stages, each kept when it is finished."""
