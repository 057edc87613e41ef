package perfevent

import (
	"testing"
	"time"
)

// TestNotifier checks that a wait ends at its time and not before. A notification before
// it or during it ends it.
func TestNotifier(t *testing.T) {
	b, err := newNotifier()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		until := time.Now().Add(5 * time.Millisecond)
		for range 10 { // it may return for no reason
			b.wait(until)
		}
		if early := time.Until(until); early > 0 {
			t.Errorf("it ended %v too early", early)
		}
		b.wait(time.Now().Add(-time.Second)) // a time that has passed

		b.notify()
		b.wait(time.Time{})
		go b.notify()
		b.wait(time.Time{})
	}
	b.close()
	b.close()
	b.notify()
	b.wait(time.Time{})
}
