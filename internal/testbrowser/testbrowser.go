// Package testbrowser drives Chromium in tests. It is for tests only.
package testbrowser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// names are what Chromium is called.
var names = []string{"chromium", "chromium-browser", "google-chrome", "chrome"}

// A Browser is a headless Chromium with a profile of its own. Its user is a test.
type Browser struct {
	t   testing.TB
	ctx context.Context
}

// patience is how long a tab has for everything.
const patience = 4 * time.Minute

// shared is the browser of the process, started by the first test that needs it.
var shared struct {
	sync.Once
	ctx context.Context
	end func()
	err error
}

// Main runs the tests of a package, for its TestMain, and ends the browser. It returns the
// exit status.
func Main(m *testing.M) int {
	status := m.Run()
	if shared.end != nil {
		shared.end()
	}
	return status
}

// New returns the browser of the process. The test is skipped where there is none.
func New(t testing.TB) *Browser {
	t.Helper()
	path := ""
	for _, name := range names {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("there is no Chromium: apt-get install chromium")
	}
	shared.Do(func() { start(path) })
	if shared.err != nil {
		t.Fatalf("%s does not start: %v", path, shared.err)
	}
	return &Browser{t, shared.ctx}
}

// start starts the browser.
func start(path string) {
	profile, err := os.MkdirTemp("", "testbrowser")
	if err != nil {
		shared.err = err
		return
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.UserDataDir(profile),
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true))
	ctx, end := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, close := chromedp.NewContext(ctx, chromedp.WithErrorf(func(string, ...any) {})) // events newer than the protocol are no errors
	shared.ctx = ctx
	shared.end = func() {
		_ = chromedp.Cancel(ctx) // waits for its end, before the profile is removed
		close()
		end()
		os.RemoveAll(profile)
	}
	shared.err = chromedp.Do(ctx)
}

// A Tab is an open page.
type Tab struct {
	t        testing.TB
	ctx      context.Context
	mu       sync.Mutex
	problems []string // errors of the console, and uncaught ones
	requests []string
}

// File writes a page and opens it from the disk. At the end of the test the page must have
// logged no error, and asked for nothing else.
func (b *Browser) File(page []byte) *Tab {
	b.t.Helper()
	name := filepath.Join(b.t.TempDir(), "page.html")
	if err := os.WriteFile(name, page, 0o600); err != nil {
		b.t.Fatal(err)
	}
	return b.Open("file://" + name)
}

// Open opens an address. Requests may go to its origin only.
func (b *Browser) Open(address string) *Tab {
	b.t.Helper()
	tab := b.Foreign(address)
	b.t.Cleanup(func() { tab.check(address) })
	return tab
}

// Foreign opens a page of others, which may ask for what it likes.
func (b *Browser) Foreign(address string) *Tab {
	b.t.Helper()
	ctx, close := chromedp.NewContext(b.ctx)
	ctx, end := context.WithTimeout(ctx, patience)
	tab := &Tab{t: b.t, ctx: ctx}
	b.t.Cleanup(func() {
		end()
		close()
	})
	if err := chromedp.Listen(ctx, tab.listen); err != nil {
		b.t.Fatal(err)
	}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(address)); err != nil {
		b.t.Fatalf("%s: %v", address, err)
	}
	return tab
}

func (t *Tab) listen(event any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		t.problems = append(t.problems, exception(e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			t.problems = append(t.problems, fmt.Sprintf("%v", e.Args))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			t.problems = append(t.problems, e.Entry.Text+" "+e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		t.requests = append(t.requests, e.Request.URL)
	}
}

// exception is an uncaught error as text.
func exception(d *runtime.ExceptionDetails) string {
	text := fmt.Sprintf("%s at %d:%d", d.Text, d.LineNumber, d.ColumnNumber)
	if d.Exception != nil {
		text += ": " + d.Exception.Description
	}
	return text
}

// check looks for errors, and for requests that leave.
func (t *Tab) check(address string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.problems {
		t.t.Errorf("the page logs: %s", p)
	}
	origin := address
	if i := strings.Index(address, "://"); !strings.HasPrefix(address, "file:") && i > 0 {
		host, _, _ := strings.Cut(address[i+3:], "/")
		origin = address[:i+3] + host + "/"
	}
	for _, r := range t.requests {
		if !strings.HasPrefix(r, origin) && !strings.HasPrefix(r, "data:") && !strings.HasPrefix(r, "blob:") {
			t.t.Errorf("a request leaves: %s", r)
		}
	}
}

// Do runs actions.
func (t *Tab) Do(actions ...chromedp.Action[chromedp.Void]) {
	t.t.Helper()
	if err := chromedp.Do(t.ctx, actions...); err != nil {
		t.t.Fatal(err)
	}
}

// Eval evaluates an expression of the page, a promise to its end, into a pointer's target, if
// not nil.
func (t *Tab) Eval(expression string, to any) {
	t.t.Helper()
	text, err := chromedp.Run(t.ctx, chromedp.Evaluate[[]byte](expression, chromedp.EvalAwaitPromise, chromedp.EvalAsValue))
	if err != nil {
		t.t.Fatalf("%s: %v", expression, err)
	}
	if to == nil {
		return
	}
	if err := json.Unmarshal(text, to); err != nil {
		t.t.Fatalf("%s: %v", expression, err)
	}
}

// Screenshot returns what the window shows as a PNG.
func (t *Tab) Screenshot() []byte {
	t.t.Helper()
	png, err := chromedp.Run(t.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.t.Fatal(err)
	}
	return png
}

// PDF returns what the page prints on A4.
func (t *Tab) PDF() []byte {
	t.t.Helper()
	pdf, err := chromedp.Run(t.ctx, chromedp.PrintToPDF(chromedp.PDFPaper(chromedp.PaperA4)))
	if err != nil {
		t.t.Fatal(err)
	}
	return pdf
}

// Resize sets the size of the window.
func (t *Tab) Resize(width, height int64) {
	t.t.Helper()
	t.Do(chromedp.EmulateViewport(width, height))
	t.Frames()
}

// Vision has the page seen as with a deficiency, such as deuteranopia or achromatopsia; none ends it.
func (t *Tab) Vision(deficiency string) {
	t.t.Helper()
	p := emulation.SetEmulatedVisionDeficiencyParams{Type: emulation.SetEmulatedVisionDeficiencyType(deficiency)}
	t.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedVisionDeficiency, p)
		return err
	}))
	t.Frames()
}

// Frames waits until the page has been drawn twice.
func (t *Tab) Frames() {
	t.t.Helper()
	t.Eval("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))", nil)
}

// Text returns the text of the first element that a selector has.
func (t *Tab) Text(selector string) string {
	t.t.Helper()
	var text string
	t.Eval(fmt.Sprintf("document.querySelector(%q)?.textContent ?? '(no such element)'", selector), &text)
	return text
}

// Texts returns the texts of all elements that a selector has.
func (t *Tab) Texts(selector string) []string {
	t.t.Helper()
	var texts []string
	t.Eval(fmt.Sprintf("[...document.querySelectorAll(%q)].map(e => e.textContent)", selector), &texts)
	return texts
}

// place is the middle of an element, which is scrolled into view.
func (t *Tab) place(selector string) (x, y float64) {
	t.t.Helper()
	var at []float64
	t.Eval(fmt.Sprintf(`(e => { if (!e) return null; e.scrollIntoView({block: "center", inline: "center"}); const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })(document.querySelector(%q))`, selector), &at)
	if len(at) != 2 {
		t.t.Fatalf("there is no %s", selector)
	}
	return at[0], at[1]
}

// Click clicks on an element with the mouse.
func (t *Tab) Click(selector string) {
	t.t.Helper()
	x, y := t.place(selector)
	t.Do(chromedp.MouseClickXY(x, y))
	t.Frames()
}

// Drag presses the mouse on an element at a part of its width, and releases it at another.
func (t *Tab) Drag(selector string, from, to float64) {
	t.t.Helper()
	x, y := t.place(selector)
	var width float64
	t.Eval(fmt.Sprintf("document.querySelector(%q).getBoundingClientRect().width", selector), &width)
	a, b := x+(from-0.5)*width, x+(to-0.5)*width
	t.Do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, a, y), chromedp.MouseEvent(input.DispatchMouseEventTypeMousePressed, a, y, chromedp.ButtonLeft),
		chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, (a+b)/2, y, chromedp.ButtonLeft), chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, b, y, chromedp.ButtonLeft),
		chromedp.MouseEvent(input.DispatchMouseEventTypeMouseReleased, b, y, chromedp.ButtonLeft))
	t.Frames()
}

// Focus focuses an element.
func (t *Tab) Focus(selector string) {
	t.t.Helper()
	t.Eval(fmt.Sprintf("document.querySelector(%q).focus()", selector), nil)
}

// Keys are keys by name.
var Keys = map[string]string{"Enter": kb.Enter, "Escape": kb.Escape, "ArrowDown": kb.ArrowDown, "ArrowUp": kb.ArrowUp, "ArrowLeft": kb.ArrowLeft, "ArrowRight": kb.ArrowRight,
	"Home": kb.Home, "End": kb.End, "Tab": kb.Tab, "PageDown": kb.PageDown}

// Press presses keys, by their names.
func (t *Tab) Press(keys ...string) {
	t.t.Helper()
	for _, k := range keys {
		code, ok := Keys[k]
		if !ok {
			code = k
		}
		t.Do(chromedp.KeyEvent(code))
	}
	t.Frames()
}

// Wait waits until an expression is true.
func (t *Tab) Wait(expression string) {
	t.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var ok bool
		if t.Eval(expression, &ok); ok {
			return
		}
	}
	t.t.Fatalf("this does not become true: %s", expression)
}
