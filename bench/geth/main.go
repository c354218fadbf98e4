// Measures what go-ethereum needs to check the receipts of recorded blocks, in CPU time of this process on one thread.
//
// Arguments: how often to go through the blocks, then files of rlp([header, [transaction...], [receipt...]]). Printed as JSON:
// microseconds per block of decoding the receipts and deriving their root, and of the same with their blooms recomputed.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
)

type recorded struct {
	Header       types.Header
	Transactions [][]byte
	Receipts     [][]byte
}

type result struct {
	Root  float64 `json:"root"`
	Bloom float64 `json:"root_and_bloom"`
}

func main() {
	runtime.GOMAXPROCS(1)
	repeats, err := strconv.Atoi(os.Args[1])
	require(err)
	blocks := read(os.Args[2:])
	measured := result{measure(blocks, repeats, verifyRoot), measure(blocks, repeats, verifyRootAndBloom)}
	require(json.NewEncoder(os.Stdout).Encode(measured))
}

func read(paths []string) []recorded {
	blocks := make([]recorded, len(paths))
	for i, path := range paths {
		data, err := os.ReadFile(path)
		require(err)
		require(rlp.DecodeBytes(data, &blocks[i]))
	}
	return blocks
}

func measure(blocks []recorded, repeats int, verify func(*recorded)) float64 {
	began := cpuMicroseconds()
	for range repeats {
		for i := range blocks {
			verify(&blocks[i])
		}
	}
	return (cpuMicroseconds() - began) / float64(repeats*len(blocks))
}

func verifyRoot(block *recorded) {
	decodeAndDerive(block)
}

func verifyRootAndBloom(block *recorded) {
	receipts := decodeAndDerive(block)
	for _, receipt := range receipts {
		if types.CreateBloom(receipt) != receipt.Bloom {
			fail(fmt.Errorf("a receipt of block %d has another bloom", block.Header.Number))
		}
	}
	if types.MergeBloom(receipts) != block.Header.Bloom {
		fail(fmt.Errorf("block %d has another bloom", block.Header.Number))
	}
}

func decodeAndDerive(block *recorded) types.Receipts {
	receipts := make(types.Receipts, len(block.Receipts))
	for i, raw := range block.Receipts {
		receipts[i] = new(types.Receipt)
		require(receipts[i].UnmarshalBinary(raw))
	}
	if types.DeriveSha(receipts, trie.NewStackTrie(nil)) != block.Header.ReceiptHash {
		fail(fmt.Errorf("block %d has another receipts root", block.Header.Number))
	}
	return receipts
}

// Of all threads: the garbage collector's time is time, too.
func cpuMicroseconds() float64 {
	var usage syscall.Rusage
	require(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e3
}

func require(err error) {
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "error:", err)
	os.Exit(1)
}
