"""Routing keys as the contract takes them, and why one does or does not mean a binding key."""

from proofcast.routing.automaton import VERSION, compile_expression, get_automaton_length
from proofcast.routing.key import Hash, RoutingKey, parse_routing_key, split_hierarchical_key, verify_binding_key


def encode_routing_key(text: str) -> bytes:
    """A routing key of one or more parts, checked."""
    split_hierarchical_key(text)
    return text.encode()


def encode_expression_key(expression: str, rest: str | None = None) -> bytes:
    """A routing key whose first part is a regular expression, which travels as its automaton."""
    automaton = compile_expression(expression).encode()
    return automaton if rest is None else automaton + b"." + encode_routing_key(rest)


def get_rest(key: bytes) -> bytes:
    """What an exchange passes on of a well-formed routing key: all behind its first part."""
    first = get_automaton_length(key) if key[:1] == bytes([VERSION]) else len(key.partition(b".")[0])
    return key[first + 1 :]


def explain_key(text: str, binding: str, hash_means: Hash = Hash.ONE) -> str:
    """One sentence: why the first part of a routing key means a binding key, or where it fails."""
    part, _ = split_hierarchical_key(text)
    wanted = parse_routing_key(part, hash_means)
    verify_binding_key(binding)
    if wanted.matches(binding):
        return f"`{part}` means `{binding}`" + explain_readings(wanted)
    read = count_readable(wanted, binding)
    if read < len(binding):
        return f"`{part}` cannot read the `{binding[read]}` at character {read + 1} of `{binding}`"
    return f"`{binding}` ends where `{part}` wants more characters"


def explain_expression(expression: str, binding: str) -> str:
    verb = "means" if compile_expression(expression).accepts(verify_binding_key(binding)) else "does not mean"
    return f"the expression `{expression}` {verb} `{binding}`"


def explain_readings(wanted: RoutingKey) -> str:
    parts = []
    if "*" in wanted.text:
        parts.append("`*` reads one or more characters")
    if "#" in wanted.text:
        parts.append("`#` reads " + ("none or one" if wanted.hash is Hash.NONE_OR_ONE else "exactly one"))
    return ": " + ", ".join(parts) if parts else ": they are identical"


def count_readable(wanted: RoutingKey, binding: str) -> int:
    """How many characters of the binding key some reading of the routing key gets through.

    A reading that got so far is one that some longer key would complete, which `*` at the end stands for.
    """
    prefixes = (wanted.text[:length] for length in range(1, len(wanted.text) + 1))
    keys = [parse_routing_key(prefix, wanted.hash) for prefix in prefixes]
    readable = [count for count in range(1, len(binding) + 1) if any(key.matches(binding[:count]) for key in keys)]
    return max(readable, default=0)
