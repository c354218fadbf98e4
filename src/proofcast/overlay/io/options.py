"""What a peer process is started with; the command line writes it without loading libp2p."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

SOCKET_NAME = "peer.sock"


@dataclass(frozen=True, slots=True)
class PeerOptions:
    state: Path
    listen: str
    bootstrap: tuple[str, ...]
    announce: str | None
    """The address others should dial, where it is not the one listened on."""
    region: str
    capacity: int
    kad_protocol: str
    """Of libp2p's own Kademlia: which network's tables this peer enters."""

    @property
    def socket_path(self) -> Path:
        return self.state / SOCKET_NAME

    def encode(self) -> str:
        return json.dumps(asdict(self) | {"state": str(self.state)})

    @classmethod
    def parse(cls, text: str) -> "PeerOptions":
        fields = json.loads(text)
        return cls(**fields | {"state": Path(fields["state"]), "bootstrap": tuple(fields["bootstrap"])})
