package witness_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// shotsVar names a folder for screenshots of the pages, to be looked at.
const shotsVar = "TOOL_GUARDIAN_SCREENSHOTS"

// browser is a headless Chromium and what its console said.
type browser struct {
	t   testing.TB
	ctx context.Context

	mu   sync.Mutex
	said []string // guarded by mu
}

func newBrowser(t testing.TB) *browser {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			program = p
			break
		}
	}
	if program == "" {
		t.Skip("no chromium is installed: the witness's page is not seen by a browser")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.Flag("disable-dev-shm-usage", true))
	ctx, stop := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	b := &browser{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, b.hear)
	b.do(log.Enable(), runtime.Enable())
	return b
}

func (b *browser) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *log.EventEntryAdded:
		b.said = append(b.said, e.Entry.Text+" "+e.Entry.URL)
	case *runtime.EventConsoleAPICalled:
		b.said = append(b.said, "console call")
	case *runtime.EventExceptionThrown:
		b.said = append(b.said, e.ExceptionDetails.Text)
	}
}

func (b *browser) do(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// silent fails the test if the console said anything since the last time.
func (b *browser) silent(where string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.said) > 0 {
		b.t.Errorf("%s: the console says %q", where, b.said)
	}
	b.said = nil
}

// look sets the width of the screen and the colours asked for.
func (b *browser) look(width int64, scheme string) {
	b.t.Helper()
	b.do(emulation.SetDeviceMetricsOverride(width, 900, 1, width < 600),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
}

// eval gives the value of an expression. It runs beside the page, which has no
// script of its own.
func eval[T any](b *browser, expression string) (value T) {
	b.t.Helper()
	b.do(chromedp.Evaluate(expression, &value))
	return value
}

func (b *browser) keep(name string) {
	b.t.Helper()
	dir := os.Getenv(shotsVar)
	if dir == "" {
		return
	}
	var shot []byte
	b.do(chromedp.FullScreenshot(&shot, 100))
	if err := os.WriteFile(filepath.Join(dir, name+".png"), shot, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// The pages in a browser: on a phone, a tablet and a desk, by their links, by
// the keyboard and in print.
func TestPageInBrowser(t *testing.T) {
	b := newBrowser(t)
	s := newScene(t, withBuiltIn)
	if err := s.server.Stamp(context.Background()); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]func(*testing.T, *browser, *scene){
		"screens": testScreens, "links": testLinks, "keyboard": testKeyboard, "print": testPrint,
	} {
		t.Run(name, func(t *testing.T) {
			b.t = t
			test(t, b, s)
			b.silent(name)
		})
	}
}

// Nothing is wider than the screen, and both kinds of colours are there.
func testScreens(t *testing.T, b *browser, s *scene) {
	pages := map[string]string{"overview": "/", "chain": pathOf(s.busy)}
	if !testing.Short() {
		pages["forked"], pages["silent"], pages["revoked"], pages["new"] = pathOf(s.fork), pathOf(s.mute), pathOf(s.gone), pathOf(s.fresh)
		pages["leaf"] = fmt.Sprintf("/leaf/%d", s.agent(s.busy.origin()).HeadAt)
		pages["search"] = "/search?q=" + s.agent(s.busy.origin()).HeadRoot.Hex()
	}
	backgrounds := map[string]bool{}
	for width, scheme := range map[int64]string{360: "light", 800: "dark", 1200: "light"} {
		b.look(width, scheme)
		for name, path := range pages {
			where := fmt.Sprintf("%s-%s-%d", name, scheme, width)
			b.do(chromedp.Navigate(s.url + path))
			if over := eval[int64](b, "document.documentElement.scrollWidth") - width; over > 0 {
				t.Errorf("%s is %d pixels too wide", where, over)
			}
			backgrounds[eval[string](b, "getComputedStyle(document.documentElement).backgroundColor")] = true
			b.silent(where)
			b.keep(where)
		}
	}
	if len(backgrounds) != 2 {
		t.Errorf("backgrounds %v, want one light and one dark", backgrounds)
	}
}

// Every link of the pages that are reached from the first leads to something.
func testLinks(t *testing.T, b *browser, s *scene) {
	most := 20
	if testing.Short() {
		most = 8
	}
	queue, seen := []string{s.url + "/"}, map[string]bool{s.url + "/": true}
	for i := 0; i < len(queue) && i < most; i++ {
		b.do(chromedp.Navigate(queue[i]))
		b.silent(queue[i])
		for _, link := range eval[[]string](b, "[...document.querySelectorAll('a[href]')].map(a => a.href.split('#')[0])") {
			if !seen[link] && followed(t, link, s.url) {
				queue = append(queue, link)
			}
			seen[link] = true
		}
	}
	for _, kind := range []string{"/chain/", "/leaf/", "/proof?", "/fork/", "/timestamp/", "/checkpoint"} {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(seen)), func(link string) bool { return strings.Contains(link, kind) }) {
			t.Errorf("no link to %s", kind)
		}
	}
}

func followed(t *testing.T, link, home string) (isPage bool) {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil || !strings.HasPrefix(link, home+"/") {
		t.Errorf("the link %s leads elsewhere: %v", link, err)
		return false
	}
	resp, err := http.Get(link)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("the link %s: %s", u.RequestURI(), resp.Status)
	}
	return resp.StatusCode == http.StatusOK && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html")
}

// By the keyboard alone: skip the header, find a hash, open the chain.
func testKeyboard(t *testing.T, b *browser, s *scene) {
	b.look(1200, "light")
	b.do(chromedp.Navigate(s.url+"/"), chromedp.KeyEvent(kb.Tab))
	if skip := eval[string](b, "document.activeElement.className"); skip != "skip" {
		t.Errorf("the first stop is %q, want the skip link", skip)
	}
	if left := eval[float64](b, "document.activeElement.getBoundingClientRect().left"); left < 0 {
		t.Error("the skip link is not seen when it has the focus")
	}
	b.do(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab))
	if id := eval[string](b, "document.activeElement.id"); id != "q" {
		t.Fatalf("the third stop is %q, want the search field", id)
	}
	if outline := eval[string](b, "getComputedStyle(document.activeElement).outlineStyle"); outline != "solid" {
		t.Errorf("the outline of the focus is %q", outline)
	}
	b.do(chromedp.KeyEvent(s.busy.origin()))
	if _, err := chromedp.RunResponse(b.ctx, chromedp.KeyEvent(kb.Enter)); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Focus(".results a"))
	if _, err := chromedp.RunResponse(b.ctx, chromedp.KeyEvent(kb.Enter)); err != nil {
		t.Fatal(err)
	}
	if heading := eval[string](b, "document.title"); heading != s.busy.origin() {
		t.Errorf("the search led to %q", heading)
	}
}

// In print there is no form, and the whole fits on pages.
func testPrint(t *testing.T, b *browser, s *scene) {
	var pdf []byte
	b.do(emulation.SetEmulatedMedia().WithMedia("print"), chromedp.Navigate(s.url+pathOf(s.busy)))
	if display := eval[string](b, "getComputedStyle(document.querySelector('form')).display"); display != "none" {
		t.Errorf("the form is printed: %s", display)
	}
	b.do(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		pdf, _, err = page.PrintToPDF().WithPaperWidth(8.27).WithPaperHeight(11.69).Do(ctx)
		return err
	}))
	if len(pdf) < 1000 || !slices.Equal(pdf[:5], []byte("%PDF-")) {
		t.Errorf("a print of %d bytes", len(pdf))
	}
	if dir := os.Getenv(shotsVar); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, "chain.pdf"), pdf, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
