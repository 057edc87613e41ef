package perfstat

import (
	"bytes"
	"strconv"
	"strings"
)

// parseCPU reads a line that names the processor:
//
//	# cpu: skylakex                      a comment that cyclestack asks for
//	# cpuid : GenuineIntel,6,142,10      perf report --header, perf stat report
//	Using CPUID GenuineIntel-6-8E-A      perf stat -v
//
// Of these own is the first, which no tool writes.
func parseCPU(line []byte) (cpu string, own, ok bool) {
	if rest, found := bytes.CutPrefix(line, []byte("Using CPUID ")); found {
		cpu, ok = cpuid(rest)
		return cpu, false, ok
	}
	rest := bytes.TrimLeft(line, "# ")
	comment := len(rest) < len(line) && line[0] == '#'
	key, value, found := bytes.Cut(rest, []byte(":"))
	if !found {
		return "", false, false
	}
	switch key = bytes.TrimSpace(key); {
	case bytes.EqualFold(key, []byte("cpuid")):
		cpu, ok = cpuid(value)
		return cpu, false, ok
	case comment && bytes.EqualFold(key, []byte("cpu")):
		value = bytes.TrimSpace(value)
		return string(value), true, len(value) > 0
	}
	return "", false, false
}

// cpuid spells an identification as perf's tables and --cpu do. The header of
// perf.data has it with decimal numbers and commas.
func cpuid(b []byte) (string, bool) {
	id := string(bytes.TrimSpace(b))
	if id == "" || strings.ContainsAny(id, " \t") {
		return "", false
	}
	parts := strings.Split(id, ",")
	if len(parts) != 4 {
		return id, true
	}
	family, err := strconv.Atoi(parts[1])
	model, err2 := strconv.Atoi(parts[2])
	stepping, err3 := strconv.Atoi(parts[3])
	if err != nil || err2 != nil || err3 != nil {
		return id, true
	}
	return parts[0] + "-" + strconv.Itoa(family) + "-" +
		strings.ToUpper(strconv.FormatInt(int64(model), 16)) + "-" + strings.ToUpper(strconv.FormatInt(int64(stepping), 16)), true
}
