package simulation

import "testing"

// TestCoreFor checks that programs are not timed by the core of another instruction set.
func TestCoreFor(t *testing.T) {
	t.Parallel()
	o := Options{Core: ModelledCore("skylakex")}
	for target, want := range map[string]string{"x86_64": "skylake", "aarch64": "neoversen1", "riscv64": "", "ppc64le": ""} {
		got := ""
		if c := o.coreFor(target); c != nil {
			got = c.Name
		}
		if got != want {
			t.Errorf("%s: %q, want %q", target, got, want)
		}
	}
}
