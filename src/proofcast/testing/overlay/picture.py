"""A picture of one tree: the rendezvous of a key, and below it who forwards to whom, as SVG without any library."""

from html import escape

from proofcast.overlay.identity import compute_key
from proofcast.testing.overlay.network import Network

WIDTH, ROW, MARGIN = 960, 90, 40
STYLE = (
    "text{font:11px sans-serif;text-anchor:middle}line{stroke:#999}.own{fill:#2a7}.relay{fill:#ccc}.root{fill:#c52}"
    ".gone{fill:#fff;stroke:#c00}"
)


def find_children(network: Network, key: int) -> dict[int, list[int]]:
    """Peer to the peers below it, by the statements they made."""
    index_of = {node.contact.public_key: node.index for node in network.nodes}
    return {
        node.index: [
            index_of[child.interest.origin.public_key] for child in node.peer.scout.statements.get_children(key)
        ]
        for node in network.nodes
        if node.is_up
    }


def find_levels(network: Network, key: int) -> list[list[tuple[int, int | None]]]:
    """(peer, parent) by distance from the rendezvous; each peer where it is met first."""
    root = min(network.get_present(), key=lambda index: network.nodes[index].contact.position ^ key)
    children = find_children(network, key)
    levels: list[list[tuple[int, int | None]]] = [[(root, None)]]
    seen = {root}
    while levels[-1]:
        below = [(child, parent) for parent, _ in levels[-1] for child in children.get(parent, [])]
        fresh = {child: parent for child, parent in reversed(below) if child not in seen}
        seen |= fresh.keys()
        levels.append(sorted(fresh.items(), key=lambda pair: (pair[1] or 0, pair[0])))
    return levels[:-1]


def draw_tree(network: Network, attribute: str) -> str:
    key = compute_key(attribute)
    levels = find_levels(network, key)
    places = {
        index: (MARGIN + (WIDTH - 2 * MARGIN) * (column + 1) / (len(level) + 1), MARGIN + ROW * row)
        for row, level in enumerate(levels)
        for column, (index, _) in enumerate(level)
    }
    lines = [
        draw_line(places[parent], places[index]) for level in levels for index, parent in level if parent is not None
    ]
    dots = [draw_peer(network, key, index, places[index]) for index in places]
    height = MARGIN * 2 + ROW * (len(levels) - 1)
    title = f'<text x="{WIDTH / 2}" y="16">rendezvous of `{escape(attribute)}`: peer {levels[0][0][0]}</text>'
    body = "\n".join([f"<style>{STYLE}</style>", title, *lines, *dots])
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}">\n{body}\n</svg>\n'


def draw_line(start: tuple[float, float], end: tuple[float, float]) -> str:
    return f'<line x1="{start[0]:.1f}" y1="{start[1]}" x2="{end[0]:.1f}" y2="{end[1]}"/>'


def draw_peer(network: Network, key: int, index: int, place: tuple[float, float]) -> str:
    node = network.nodes[index]
    kind = "own" if key in node.peer.scout.trunks.own.values() else "relay"
    if node.peer.seat.is_rendezvous(key):
        kind = "root"
    mark = kind if node.is_up else "gone"
    x, y = place
    return f'<circle class="{mark}" cx="{x:.1f}" cy="{y}" r="9"/><text x="{x:.1f}" y="{y + 4}">{index}</text>'
