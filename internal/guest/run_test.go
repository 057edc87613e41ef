package guest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/guest/wire"
)

func TestListen(t *testing.T) {
	var console bytes.Buffer
	send := func(e wire.Event) {
		line, err := wire.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		console.Write(line)
	}
	console.WriteString("firmware\r\n[ 0.0] Linux")
	send(wire.Event{Output: []byte("hello ")})
	console.WriteString("[ 1.0] a driver says something\r\n")
	send(wire.Event{Output: []byte("world\n")})
	whole := console.String()
	send(wire.Event{End: &wire.End{Status: 3}})

	var output strings.Builder
	end, noise, err := listen(&console, &output)
	if err != nil || end == nil || end.Status != 3 || output.String() != "hello world\n" {
		t.Errorf("end %v, output %q, error %v", end, &output, err)
	}
	if got := string(noise); !strings.Contains(got, "a driver says") || strings.Contains(got, "guest") {
		t.Errorf("the console had besides: %q", got)
	}

	output.Reset()
	end, _, err = listen(strings.NewReader(whole), &output)
	if end != nil || err != nil || output.String() != "hello world\n" {
		t.Errorf("of a guest that died: end %v, output %q, error %v", end, &output, err)
	}
}

// What a guest prints is bounded.
func TestListenNoise(t *testing.T) {
	_, noise, err := listen(strings.NewReader(strings.Repeat("panic: again and again\n", 10_000)+"the end\n"), new(strings.Builder))
	if err != nil || len(noise) > 4<<10 || !strings.HasSuffix(string(noise), "the end\n") {
		t.Errorf("%d bytes of noise, ending %q; error %v", len(noise), noise[max(0, len(noise)-20):], err)
	}
}
