package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// mcaIterations is how often llvm-mca executes a block.
const mcaIterations = 100

// askMCA returns the mean error of llvm-mca on those blocks that it takes, and their
// number.
func askMCA(cpu string, list []result) (mean float64, blocks int, err error) {
	text, err := disassembled(list)
	if err != nil {
		return 0, 0, err
	}
	regions := strings.Split(text, boundaryText)
	sum := 0.0
	for start := 0; start < len(list); start += mcaBatch {
		end := min(start+mcaBatch, len(list))
		cycles, err := mcaCycles(cpu, regions[start:end])
		if err != nil {
			return 0, 0, err
		}
		for i, c := range cycles {
			r := list[start+i]
			if r.got = c / mcaIterations; c > 0 {
				sum += r.err()
				blocks++
			}
		}
	}
	return sum / float64(blocks), blocks, nil
}

// An INT3 stands between the blocks: none of them has one.
const (
	boundary     = "0xcc\n"
	boundaryText = "\tint3"
	mcaBatch     = 50 // blocks of a run: llvm-mca stops at the first one that it does not take
)

// disassembled returns the assembly of all blocks.
func disassembled(list []result) (string, error) {
	var in strings.Builder
	for _, r := range list {
		for i := 0; i+1 < len(r.code); i += 2 {
			fmt.Fprintf(&in, "0x%s ", r.code[i:i+2])
		}
		in.WriteString("\n" + boundary)
	}
	c := exec.Command("llvm-mc", "--disassemble", "--triple=x86_64-linux", "--mattr=+avx,+avx2,+fma,+bmi,+bmi2,+lzcnt,+popcnt")
	c.Stdin = strings.NewReader(in.String())
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("llvm-mc: %w", err)
	}
	return string(out), nil
}

var totalCycles = regexp.MustCompile(`(?m)^Total Cycles:\s+(\d+)$`)

// mcaCycles returns the cycles of all iterations of each region; 0 if llvm-mca does not
// take it. It asks again for each half if it does not take one of several.
func mcaCycles(cpu string, regions []string) ([]float64, error) {
	var in bytes.Buffer
	for i, r := range regions {
		fmt.Fprintf(&in, "# LLVM-MCA-BEGIN %d\n%s\n# LLVM-MCA-END\n", i, strings.ReplaceAll(r, "\t.text", ""))
	}
	c := exec.Command("llvm-mca", "-mcpu="+cpu, "-mtriple=x86_64-linux", "-iterations="+strconv.Itoa(mcaIterations), "-resource-pressure=false", "-instruction-info=false")
	c.Stdin = &in
	out, err := c.Output()
	found := totalCycles.FindAllSubmatch(out, -1)
	if err != nil && !isExit(err) {
		return nil, fmt.Errorf("llvm-mca: %w", err)
	}
	if len(found) == len(regions) {
		cycles := make([]float64, len(regions))
		for i, m := range found {
			n, err := strconv.ParseFloat(string(m[1]), 64)
			if err != nil {
				return nil, err
			}
			cycles[i] = n
		}
		return cycles, nil
	}
	if len(regions) == 1 {
		return []float64{0}, nil
	}
	first, err := mcaCycles(cpu, regions[:len(regions)/2])
	if err != nil {
		return nil, err
	}
	second, err := mcaCycles(cpu, regions[len(regions)/2:])
	return append(first, second...), err
}

func isExit(err error) bool {
	_, ok := err.(*exec.ExitError)
	return ok
}
