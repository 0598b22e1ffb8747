package config

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Environment is what a backend gets to see, and what it does not.
type Environment struct {
	Vars       []string // NAME=value, sorted
	Dropped    []string // names that are on the list but hold a secret
	Unpassed   []string // names of the .env that this server does not get
	Unresolved []string // names that its entry uses and nothing sets
}

// Hint says which variables of the .env the server does not get and what to
// add to its entry; empty when it gets them all.
func (e Environment) Hint() string {
	if len(e.Unpassed) == 0 {
		return ""
	}
	return "it does not get " + strings.Join(e.Unpassed, ", ") + ` of the .env; to pass them add "envPass": ["` +
		strings.Join(e.Unpassed, `", "`) + `"] to its entry`
}

// What a program needs to run at all, and nothing that opens a door.
var (
	allowed = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LC_*", "TZ", "TMPDIR", "XDG_*",
		"DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "SSH_AUTH_SOCK", "DOCKER_HOST", "KUBECONFIG",
		"VIRTUAL_ENV", "NVM_*", "npm_config_*", "UV_*", "PIP_*",
		"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"}
	allowedWindows = []string{"SystemRoot", "SystemDrive", "windir", "ComSpec", "PATHEXT", "TEMP", "TMP", "APPDATA",
		"LOCALAPPDATA", "ProgramData", "ProgramFiles*", "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "USERNAME"}
)

// secretRE finds names of the package managers' variables that hold a login:
// npm_config__authToken, UV_INDEX_X_PASSWORD, PIP_TOKEN.
var secretRE = regexp.MustCompile(`(?i)auth|token|passw|secret|credential|api_?key`)

// Environ is the environment of a server: the listed variables without
// secrets, what the entry passes by name, and what it sets itself.
func (c *Config) Environ(s Server) Environment {
	env := Environment{Unresolved: unique(s.unresolved)}
	out := map[string]string{}
	for _, name := range c.vars.names() {
		value, _ := c.vars.get(name)
		switch {
		case c.matches(s.EnvPass, name):
			out[name] = value
		case !c.listed(name):
		case holdsSecret(name, value):
			env.Dropped = append(env.Dropped, name)
		default:
			out[name] = value
		}
	}
	for k, v := range s.Env {
		c.unset(out, k)
		out[k] = v
	}
	for _, k := range slices.Sorted(maps.Keys(out)) {
		env.Vars = append(env.Vars, k+"="+out[k])
	}
	env.Unpassed = c.unpassed(s, out)
	return env
}

// unset removes a name that Windows would take for the same.
func (c *Config) unset(out map[string]string, name string) {
	if !c.vars.fold {
		return
	}
	for k := range out {
		if strings.EqualFold(k, name) {
			delete(out, k)
		}
	}
}

func (c *Config) listed(name string) bool {
	return c.matches(allowed, name) || c.goos == "windows" && c.matches(allowedWindows, name)
}

// matches compares with names and PREFIX*; a lone * is every name.
func (c *Config) matches(patterns []string, name string) bool {
	for _, p := range patterns {
		have := name
		if c.vars.fold {
			p, have = strings.ToUpper(p), strings.ToUpper(name)
		}
		if prefix, ok := strings.CutSuffix(p, "*"); ok && strings.HasPrefix(have, prefix) || p == have {
			return true
		}
	}
	return false
}

// indexRE finds the package managers' variables, whose URLs often hold a token
// as the user's name.
var indexRE = regexp.MustCompile(`^(?i:npm_config_|UV_|PIP_)`)

// holdsSecret judges a listed variable. SSH_AUTH_SOCK names a socket and is
// listed for it.
func holdsSecret(name, value string) bool {
	if name != "SSH_AUTH_SOCK" && secretRE.MatchString(name) {
		return true
	}
	separator := func(r rune) bool { return strings.ContainsRune(" \t\n,;", r) }
	for _, word := range strings.FieldsFunc(value, separator) {
		if strings.Contains(word, "@") && hasLogin(word, indexRE.MatchString(name)) {
			return true
		}
	}
	return false
}

// hasLogin finds scheme://user:password@, and with anyUser also scheme://user@.
// Proxies are written without a scheme too.
func hasLogin(word string, anyUser bool) bool {
	u, err := url.Parse(word)
	if err != nil && strings.Contains(word, "://") {
		return true // a login with characters that no URL has
	}
	if err != nil || u.User == nil {
		u, err = url.Parse("http://" + word)
	}
	if err != nil || u.User == nil {
		return false
	}
	_, password := u.User.Password()
	return password || anyUser && strings.Contains(word, "://")
}

// unpassed are the variables of the .env that the server neither gets nor uses
// in its entry; the router's own settings are nobody's business.
func (c *Config) unpassed(s Server, out map[string]string) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(c.vars.file)) {
		_, passed := out[name]
		own := strings.HasPrefix(name, "TOOL_GUARDIAN_") || strings.HasPrefix(name, "TG_")
		if !passed && !own && !slices.Contains(s.used, name) {
			names = append(names, name)
		}
	}
	return names
}

func unique(names []string) []string {
	out := slices.Clone(names)
	slices.Sort(out)
	return slices.Compact(out)
}
