// A peer written in Go: the interop partner of the tests. It listens, greets, and answers FindNode with nobody; in
// libp2p's own Kademlia, with the protocol id of the first argument, it answers FIND_NODE and looks for the peers that
// are named on its standard input, one a line.
package main

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"github.com/fxamacker/cbor/v2"
	"github.com/libp2p/go-libp2p"
	dht "github.com/libp2p/go-libp2p-kad-dht"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

const (
	protocolID   = "/proofcast/overlay/1.0.0"
	frameMax     = 1 << 20
	tagFindNode  = 0
	tagNodes     = 1
	tagHello     = 28
	contactClaim = "proofcast contact"
)

type contact struct {
	_         struct{} `cbor:",toarray"`
	PublicKey []byte
	Address   string
	Signature []byte
}

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func writeFrame(stream io.Writer, message any) error {
	body, err := cbor.Marshal(message)
	if err != nil {
		return err
	}
	_, err = stream.Write(append(binary.AppendUvarint(nil, uint64(len(body))), body...))
	return err
}

func readFrame(reader *bufio.Reader) ([]cbor.RawMessage, error) {
	length, err := binary.ReadUvarint(reader)
	if err != nil || length > frameMax {
		return nil, io.ErrUnexpectedEOF
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(reader, body); err != nil {
		return nil, err
	}
	var fields []cbor.RawMessage
	return fields, cbor.Unmarshal(body, &fields)
}

func serve(stream network.Stream, self contact) {
	defer stream.Close()
	reader := bufio.NewReader(stream)
	if writeFrame(stream, []any{tagHello, self}) != nil {
		return
	}
	for {
		fields, err := readFrame(reader)
		if err != nil || len(fields) == 0 {
			return
		}
		var tag int
		if cbor.Unmarshal(fields[0], &tag) != nil {
			return
		}
		if tag == tagFindNode && len(fields) == 2 {
			if writeFrame(stream, []any{tagNodes, fields[1], []contact{}}) != nil {
				return
			}
		}
	}
}

func main() {
	seed := make([]byte, ed25519.SeedSize)
	copy(seed, "the go partner")
	private := ed25519.NewKeyFromSeed(seed)
	key := must(crypto.UnmarshalEd25519PrivateKey(private))
	host := must(libp2p.New(libp2p.Identity(key), libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0")))
	address := fmt.Sprintf("%s/p2p/%s", host.Addrs()[0], host.ID())
	public := []byte(private.Public().(ed25519.PublicKey))
	claim := must(cbor.Marshal([]any{contactClaim, public, address}))
	self := contact{PublicKey: public, Address: address, Signature: ed25519.Sign(private, claim)}
	host.SetStreamHandler(protocolID, func(stream network.Stream) { serve(stream, self) })
	kad := must(dht.New(host, dht.Mode(dht.ModeServer), dht.DisableAutoRefresh(),
		dht.V1ProtocolOverride(protocol.ID(os.Args[1]))))
	fmt.Println(address)
	for names := bufio.NewScanner(os.Stdin); names.Scan(); { // the test closes it to end us
		found, err := kad.FindPeer(context.Background(), must(peer.Decode(names.Text())))
		fmt.Println(found.Addrs, err)
	}
}
